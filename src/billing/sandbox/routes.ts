import * as v from "valibot";
import { type ErasedEndpoint, endpoint, type Reply } from "../../http/endpoint.ts";
import { pageHeaders } from "../../http/page-headers.ts";
import { bankPage, confirmPathOf, overPage, pathOf, paymentPage, styleSource, unknownPage } from "./pages.ts";
import type { PageAnswer, Sandbox, SandboxPage } from "./sandbox.ts";

const tag = "Pages";
const params = v.object({ accessCode: v.string() });
const maxFormBytes = 4 * 1024;

/**
 * The sandbox's pages. An access code is all it takes to pay, and all there is to steal: nobody is logged in here, so
 * there is nothing for a forged request to misuse.
 */
export function sandboxRoutes({ sandbox }: { sandbox: Pick<Sandbox, "page" | "pay" | "confirm"> }): ErasedEndpoint[] {
  return [
    endpoint(
      {
        method: "GET",
        path: "/pay/sandbox/:accessCode",
        tag,
        summary: "The sandbox's hosted payment page",
        access: "none",
        params,
        responses: { 200: { description: "The page.", contentType: "text/html" } },
      },
      async ({ params: { accessCode } }) => {
        const page = await sandbox.page(accessCode);
        if (!page) return unknown();
        if (page.kind === "saved_card") return seeOther(confirmPathOf(page));
        return isPaid(page) ? show(200, page, overPage(page)) : show(200, page, paymentPage(page, null));
      },
    ),

    endpoint(
      {
        method: "POST",
        path: "/pay/sandbox/:accessCode",
        tag,
        summary: "Pay with the number of a test card",
        access: "none",
        params,
        body: "form",
        fromSecretPage: true,
        maxBodyBytes: maxFormBytes,
        responses: { 303: { description: "Paid: back to where the customer came from." } },
      },
      async ({ params: { accessCode }, body }) => replyTo(await sandbox.pay(accessCode, body.get("card") ?? "")),
    ),

    endpoint(
      {
        method: "GET",
        path: "/pay/sandbox/:accessCode/confirm",
        tag,
        summary: "The sandbox bank's confirmation page",
        access: "none",
        params,
        responses: { 200: { description: "The page.", contentType: "text/html" } },
      },
      async ({ params: { accessCode } }) => {
        const page = await sandbox.page(accessCode);
        if (!page) return unknown();
        if (page.state === "confirming") return show(200, page, bankPage(page, null));
        return page.kind === "hosted" ? seeOther(pathOf(page)) : show(200, page, overPage(page));
      },
    ),

    endpoint(
      {
        method: "POST",
        path: "/pay/sandbox/:accessCode/confirm",
        tag,
        summary: "Answer the bank",
        access: "none",
        params,
        body: "form",
        fromSecretPage: true,
        maxBodyBytes: maxFormBytes,
        responses: { 303: { description: "Answered: back to where the customer came from." } },
      },
      async ({ params: { accessCode }, body }) => {
        const answer = body.get("confirm");
        if (answer === "yes" || answer === "no") return replyTo(await sandbox.confirm(accessCode, answer === "yes"));
        const page = await sandbox.page(accessCode);
        if (!page) return unknown();
        return page.state === "confirming"
          ? show(400, page, bankPage(page, "Confirm the payment or refuse it."))
          : seeOther(confirmPathOf(page));
      },
    ),
  ];
}

/** Where the customer goes after entering a card or answering the bank. */
function replyTo(answer: PageAnswer | null): Reply {
  if (!answer) return unknown();
  const { page, problem } = answer;
  if (isPaid(page)) return seeOther(page.returnUrl);
  if (page.kind === "saved_card") return seeOther(page.state === "failed" ? page.returnUrl : confirmPathOf(page));
  if (problem !== null) return show(400, page, paymentPage(page, problem));
  if (page.state === "confirming") return seeOther(confirmPathOf(page));
  return show(402, page, paymentPage(page, null));
}

/** Includes a refunded payment: there is nothing left to pay. */
const isPaid = ({ state }: SandboxPage) => state === "paid" || state === "reversed";

// ---------------------------------------------------------------- answers

/** RFC 9110, section 15.4.4: whatever the method was, the next page is fetched with GET. */
const seeOther = (location: string): Reply => ({ status: 303, headers: { Location: location } });

const unknown = (): Reply => ({ status: 404, text: unknownPage(), headers: headersOf() });

/**
 * Chromium also applies `form-action` to a redirect after a form is submitted, so the way back must be allowed by name:
 * the public address of this server is often not the one under which the page was opened.
 */
const show = (status: number, page: SandboxPage, html: string): Reply => ({
  status,
  text: html,
  headers: headersOf(new URL(page.returnUrl).origin),
});

const headersOf = (...formTargets: string[]) =>
  pageHeaders({ "style-src": styleSource, "form-action": ["'self'", ...formTargets].join(" ") });
