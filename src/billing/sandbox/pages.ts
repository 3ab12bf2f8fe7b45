import { createHash } from "node:crypto";
import { testCards } from "./cards.ts";
import style from "./pages.css" with { type: "text" };
import type { SandboxPage } from "./sandbox.ts";

/** The only style that the pages may have (Content Security Policy, level 3, section 2.3.1). */
export const styleSource = `'sha256-${createHash("sha256").update(style).digest("base64")}'`;

/** Where a page is on this server. */
export const pathOf = ({ accessCode }: Pick<SandboxPage, "accessCode">) => `/pay/sandbox/${accessCode}`;
export const confirmPathOf = (page: Pick<SandboxPage, "accessCode">) => `${pathOf(page)}/confirm`;

/** The hosted page: pick a card, pay. It works without any script, so that the policy can forbid all of them. */
export function paymentPage(page: SandboxPage, problem: string | null): string {
  const amount = amountOf(page);
  const declined = page.state === "failed" && page.reason !== null ? `${page.reason}. Nothing was charged.` : null;
  const alert = problem === null ? declined : `${problem}.`;
  return layout(
    `${alert === null ? "" : `${alert} `}Pay ${amount}`,
    html`
<header>
<p class="who">To Postrider</p>
<h1>${amount}</h1>
</header>
${alertOf(alert)}
<form method="post" action="${pathOf(page)}">
<fieldset>
<legend>Pick a test card</legend>
${testCards.map(
  ({ number, name, does }, i) => html`<label class="card">
<input type="radio" name="card" value="${number}"${i === 0 ? html` checked` : null}>
<span class="title"><span>${name}</span> <span class="number">${number}</span></span>
<span class="does">${does}</span>
</label>
`,
)}</fieldset>
<button class="primary">Pay ${amount}</button>
<a class="button" href="${page.cancelUrl ?? page.returnUrl}">Cancel</a>
</form>
<details${problem === null ? null : html` open`}>
<summary>Enter the number of a test card</summary>
<form method="post" action="${pathOf(page)}">
<label for="number">Card number</label>
<input id="number" name="card" inputmode="numeric" autocomplete="off" aria-describedby="hint"${
      problem === null ? null : html` aria-invalid="true"`
    }>
<p class="hint" id="hint">Never enter the number of a real card here.</p>
<button>Pay ${amount} with this card</button>
</form>
</details>`,
  );
}

/** What the bank of a careful customer shows. */
export function bankPage(page: SandboxPage, problem: string | null): string {
  const amount = amountOf(page);
  return layout(
    `Confirm ${amount}`,
    html`
<header>
<p class="who">Test bank</p>
<h1>Confirm <span class="amount">${amount}</span></h1>
</header>
${alertOf(problem)}
<p>Postrider wants to charge ${amount} to your card ending in ${page.last4 ?? "····"}. Is this you?</p>
<form method="post" action="${confirmPathOf(page)}">
<button class="primary" name="confirm" value="yes">Confirm the payment</button>
<button name="confirm" value="no">Refuse it</button>
</form>
${page.kind === "hosted" ? html`<p><a href="${pathOf(page)}">Use another card</a></p>` : null}`,
  );
}

/** A payment with nothing left to do. */
export function overPage(page: SandboxPage): string {
  const [title, text] = wordsOf(page);
  return layout(
    title,
    html`
<header>
<p class="who">To Postrider</p>
<h1>${title}</h1>
</header>
<p>${text}</p>
<p><a class="button" href="${page.returnUrl}">Back to Postrider</a></p>`,
  );
}

function wordsOf(page: SandboxPage): [title: string, text: string] {
  const amount = amountOf(page);
  switch (page.state) {
    case "paid":
      return ["Paid", `${amount} was paid. You can close this page.`];
    case "reversed":
      return ["Refunded", `${amount} was paid and has since been refunded.`];
    case "failed":
      return ["Not paid", `${amount} was not paid (${page.reason ?? "Declined"}). Nothing was charged.`];
    case "waiting":
    case "confirming":
      return ["Not paid", `${amount} has not been paid yet.`];
  }
}

export const unknownPage = (): string =>
  layout(
    "No such payment",
    html`
<header>
<h1>No such payment</h1>
</header>
<p>The link is incomplete or belongs to another server. Open your payment link again.</p>`,
  );

const alertOf = (text: string | null) => (text === null ? null : html`<p class="alert" role="alert">${text}</p>`);

/** `NGN 1,234.50` */
function amountOf({ amountKobo }: SandboxPage): string {
  const naira = Math.floor(amountKobo / 100).toLocaleString("en-US");
  return `NGN ${naira}.${String(amountKobo % 100).padStart(2, "0")}`;
}

// ---------------------------------------------------------------- HTML

function layout(title: string, main: Markup): string {
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title} · Postrider sandbox</title>
<link rel="icon" href="data:,">
<style>${new Markup(style)}</style>
</head>
<body>
<main>
<p class="sandbox">Sandbox: no real money</p>${main}
</main>
</body>
</html>
`;
  return page.text;
}

/** Text that is already HTML. */
class Markup {
  constructor(readonly text: string) {}
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Builds HTML from a template: values are text and are escaped, unless they are already HTML. */
function html(parts: TemplateStringsArray, ...values: (string | Markup | readonly Markup[] | null)[]): Markup {
  return new Markup(parts.map((part, i) => part + markupOf(values[i] ?? null)).join(""));
}

function markupOf(value: string | Markup | readonly Markup[] | null): string {
  if (value === null) return "";
  if (typeof value === "string") return value.replace(/[&<>"']/g, (character) => entities[character] ?? "");
  return value instanceof Markup ? value.text : value.map(({ text }) => text).join("");
}
