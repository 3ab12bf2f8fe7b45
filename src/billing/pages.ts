import { createHash } from "node:crypto";
import type { Reply } from "../http/endpoint.ts";
import { pageHeaders } from "../http/page-headers.ts";

const style = `
:root { color-scheme: light dark; --ink: #1c1e21; --soft: #5c6470; --paper: #f6f7f9; --card: #fff; --line: #dfe3e8; --accent: #2457d6; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaed; --soft: #a3acb8; --paper: #14161a; --card: #1d2025; --line: #33383f; --accent: #8fb0ff; }
}
body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
main { box-sizing: border-box; width: min(28rem, calc(100vw - 2rem)); padding: 1.5rem; background: var(--card);
  border: 1px solid var(--line); border-radius: 10px; }
h1 { margin: 0 0 .5rem; font-size: 1.25rem; }
p { margin: .5rem 0 0; color: var(--soft); }
a { color: var(--accent); }
`;

/** The page has no script and loads nothing from another host; its only style is allowed by its hash. */
const styleHash = createHash("sha256").update(style).digest("base64");

const headers = pageHeaders({ "style-src": `'sha256-${styleHash}'` });

/** The dashboard's plan view. It may show what this page must not reveal: whose payment it was, and how it ended. */
const plan = { path: "/plan", words: "Back to the dashboard" };
/** Tells the plan view to say that the payment is being checked, instead of asking for it. */
const planAfterPayment = { ...plan, path: "/plan?payment=returned" };

/** Long enough to read it. */
const forwardAfterSeconds = 8;

/** A page with one message. The texts are fixed: nothing from a request ever gets into them. */
function page(
  status: number,
  title: string,
  message: string,
  { link, extra = {} }: { link?: typeof plan; extra?: Record<string, string> } = {},
): Reply {
  const text = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Postrider</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<main>
<h1>${title}</h1>
<p>${message}</p>${link ? `\n<p><a href="${link.path}">${link.words}</a></p>` : ""}
</main>
</body>
</html>
`;
  return { status, text, headers: { ...headers, ...extra } };
}

export const verifiedPage = () => page(200, "The card is verified", "You can close this page.", { link: plan });

export const expiredPage = () =>
  page(
    410,
    "This page has expired",
    "The card was not verified in time, or there is nothing left to pay. GET /v1/tenants/billing shows what the account needs.",
    { link: plan },
  );

export const unknownPage = () =>
  page(404, "There is nothing to pay here", "The link is incomplete, or its account was deleted.");

/** Does not name the address: anyone with the link can open the page. */
export const emailRefusedPage = () =>
  page(
    409,
    "The e-mail address was refused",
    "The payment processor does not accept this account's e-mail address, so no card can be verified. Set another address as email with POST /v1/tenants/payment-method, then open this page again. Nothing was charged.",
    { link: plan },
  );

export const unavailablePage = (retryAfterSeconds: number) =>
  page(
    503,
    "Please try again in a minute",
    "The payment processor cannot be reached at the moment. Nothing was charged; reload this page in a minute.",
    { extra: { "Retry-After": String(retryAfterSeconds) } },
  );

export const pausedPage = () =>
  page(
    503,
    "Payments are paused",
    "The operator of this server has paused payments. Nothing was charged; this link will work again later.",
    { extra: { "Retry-After": "600" } },
  );

/** For every page where payments are off, which nothing may mention there (rules, section 4). They may come back on. */
export const notInUsePage = (status: 200 | 503) =>
  page(status, "This page is not in use", "It may be again later; ask the operator of this server.", {
    extra: status === 503 ? { "Retry-After": "3600" } : {},
  });

/** Reveals nothing about any account: anyone who knows a reference can open it. */
export const returnedPage = () =>
  page(
    200,
    "Your payment is being checked",
    "This usually takes a few seconds. If the payment succeeded, your account is activated automatically; if not, open your payment link again. You can close this page; otherwise it leads back to the dashboard in a moment.",
    { link: planAfterPayment, extra: { Refresh: `${forwardAfterSeconds}; url=${planAfterPayment.path}` } },
  );

export const cancelledPage = () =>
  page(200, "The payment was cancelled", "Nothing was charged. Your payment link still works.", {
    link: plan,
  });
