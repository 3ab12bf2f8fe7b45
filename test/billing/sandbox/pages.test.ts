import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { testCards } from "../../../src/billing/sandbox/cards.ts";
import { sandboxRoutes } from "../../../src/billing/sandbox/routes.ts";
import { describeEndpoint } from "../../../src/http/document/operation.ts";
import { cards, createTestSandbox, type TestSandbox } from "../../support/sandbox.ts";
import { serveEndpoints } from "../../support/serve-endpoints.ts";

let world: TestSandbox;
let server: ReturnType<typeof serveEndpoints>;
beforeEach(async () => {
  world = await createTestSandbox();
  server = serveEndpoints(sandboxRoutes({ sandbox: world.sandbox }));
});
afterEach(async () => {
  await server.stop();
  await world.end();
});

async function ask(method: "GET" | "POST", path: string, form?: Record<string, string>, init: RequestInit = {}) {
  const response = await fetch(`${server.url}${path}`, {
    method,
    redirect: "manual",
    ...(form && { body: new URLSearchParams(form) }),
    ...init,
  });
  const { status, headers } = response;
  return { status, headers, location: headers.get("location"), text: await response.text() };
}

const pathOf = ({ accessCode }: { accessCode: string }) => `/pay/sandbox/${accessCode}`;
const alertIn = (html: string) => html.match(/<p class="alert" role="alert">([^<]*)<\/p>/)?.[1];
const policyOf = ({ headers }: { headers: Headers }) => headers.get("content-security-policy") ?? "";

describe("the hosted page", () => {
  test("says that it is a sandbox, whom and how much one pays, and what each card does", async () => {
    const page = await world.open({ amountKobo: 123_456_705 });
    const { status, text } = await ask("GET", pathOf(page));
    expect(status).toBe(200);
    expect(text).toContain("Sandbox: no real money");
    expect(text).toContain("To Postrider");
    expect(text).toContain("<h1>NGN 1,234,567.05</h1>");
    for (const { number, name, does } of testCards) {
      expect(text).toContain(`<input type="radio" name="card" value="${number}"`);
      expect(text).toContain(name);
      expect(text).toContain(does);
    }
    expect(text.match(/ checked/g)).toHaveLength(1);
    expect(text).toContain('href="https://relay.example/pay/cancelled">Cancel</a>');
    expect(alertIn(text)).toBeUndefined();
  });

  test("needs no script and nothing from elsewhere, and its policy lets its style and its way back through", async () => {
    const page = await world.open({ returnUrl: "http://localhost:8080/pay/done" });
    const answer = await ask("GET", pathOf(page));
    const style = answer.text.match(/<style>(.*)<\/style>/s)?.[1] ?? "";
    const hash = createHash("sha256").update(style).digest("base64");
    expect(policyOf(answer).split("; ")).toEqual([
      "default-src 'none'",
      "img-src data:",
      "form-action 'self' http://localhost:8080",
      `style-src 'sha256-${hash}'`,
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ]);
    expect(style).toContain("prefers-color-scheme: dark");
    expect(style).not.toMatch(/[<]|url\(/);
    expect(answer.text).not.toMatch(/<script|<img|style=|\son\w+=/);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
      "cross-origin-opener-policy": "same-origin",
    });
  });

  test("has a label for every field", async () => {
    const { text } = await ask("GET", pathOf(await world.open()));
    const fields = [...text.matchAll(/<input [^>]*>/g)].map(([field]) => field);
    expect(fields).toHaveLength(testCards.length + 1);
    const typed = fields.filter((field) => !field.includes('type="radio"'));
    expect(typed).toEqual([expect.stringContaining('id="number"')]);
    expect(text).toContain('<label for="number">');
    expect(text.match(/<label class="card">\s*<input type="radio"/g)).toHaveLength(testCards.length);
  });

  test("tells nothing that it need not: no e-mail address, no token, no reference", async () => {
    const page = await world.open({ reference: "ver-secret" });
    const texts = [await ask("GET", pathOf(page)), await ask("POST", pathOf(page), { card: cards.declined })];
    for (const { text } of texts) expect(text).not.toMatch(/acme|SBX_|ver-secret/);
  });

  test("escapes what it is given", async () => {
    const page = await world.open({ cancelUrl: `https://relay.example/"><b>'&amp;` });
    const { text } = await ask("GET", pathOf(page));
    expect(text).not.toContain("<b>");
    expect(text).toContain("https://relay.example/&quot;&gt;&lt;b&gt;&#39;&amp;amp;");
  });

  test("takes a good card and sends the browser back with the reference", async () => {
    const page = await world.open();
    const answer = await ask("POST", pathOf(page), { card: "4084084084084081" });
    expect([answer.status, answer.location, answer.text]).toEqual([
      303,
      `https://relay.example/pay/done?trxref=${page.reference}&reference=${page.reference}`,
      "",
    ]);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(await world.sandbox.lookUp(page.reference)).toMatchObject({ kind: "succeeded" });
  });

  test("comes again with the reason when a card is declined, and then takes another", async () => {
    const page = await world.open();
    const declined = await ask("POST", pathOf(page), { card: cards.empty });
    expect(declined.status).toBe(402);
    expect(alertIn(declined.text)).toBe("Insufficient funds. Nothing was charged.");
    expect(declined.text).toContain("<title>Insufficient funds.");
    expect(declined.text).toContain('<button class="primary">Pay NGN 100.00</button>');
    expect(policyOf(declined)).toContain("form-action 'self' https://relay.example");
    expect((await ask("POST", pathOf(page), { card: cards.good })).status).toBe(303);
  });

  test.each([
    ["nothing", {}, "Pick a test card or enter its number."],
    ["no number", { card: "4084-0840" }, "A card number consists of digits and spaces only."],
    ["a number of no test card", { card: "4111 1111 1111 1111" }, "This is a sandbox: pick one of the test cards."],
  ])("refuses %s in words, and does not repeat it", async (_, form: Record<string, string>, words) => {
    const page = await world.open();
    const answer = await ask("POST", pathOf(page), form);
    expect([answer.status, alertIn(answer.text)]).toEqual([400, words]);
    expect(answer.text).toContain('aria-invalid="true"');
    expect(answer.text).toContain("<details open>");
    expect(answer.text).not.toContain("4111");
    expect(await world.sandbox.lookUp(page.reference)).toMatchObject({ kind: "pending" });
  });

  test("that is paid says so, and a second payment goes back like the first", async () => {
    const page = await world.open();
    const first = await ask("POST", pathOf(page), { card: cards.good });
    const again = await ask("GET", pathOf(page));
    expect([again.status, again.text.includes("<form")]).toEqual([200, false]);
    expect(again.text).toContain("NGN 100.00 was paid.");
    expect(again.text).toContain(`href="${first.location?.replace("&", "&amp;")}"`);
    const second = await ask("POST", pathOf(page), { card: cards.declined });
    expect([second.status, second.location]).toEqual([303, first.location]);
    await world.sandbox.refund(page);
    expect((await ask("GET", pathOf(page))).text).toContain("has since been refunded");
  });
});

describe("the bank's page", () => {
  test("asks about the card, and a yes pays", async () => {
    const page = await world.open();
    const sent = await ask("POST", pathOf(page), { card: cards.careful });
    expect([sent.status, sent.location]).toEqual([303, `${pathOf(page)}/confirm`]);
    const asked = await ask("GET", `${pathOf(page)}/confirm`);
    expect(asked.status).toBe(200);
    expect(asked.text).toContain("charge NGN 100.00 to your card ending in 4796");
    expect(asked.text).toContain("Sandbox: no real money");
    expect(policyOf(asked)).toContain("form-action 'self' https://relay.example");
    const answered = await ask("POST", `${pathOf(page)}/confirm`, { confirm: "yes" });
    expect([answered.status, answered.location]).toEqual([
      303,
      `https://relay.example/pay/done?trxref=${page.reference}&reference=${page.reference}`,
    ]);
  });

  test("takes a no, and the hosted page comes again", async () => {
    const page = await world.open();
    await ask("POST", pathOf(page), { card: cards.careful });
    const refused = await ask("POST", `${pathOf(page)}/confirm`, { confirm: "no" });
    expect([refused.status, alertIn(refused.text)]).toEqual([402, "Not confirmed. Nothing was charged."]);
    expect(refused.text).toContain(`action="${pathOf(page)}"`);
    const gone = await ask("GET", `${pathOf(page)}/confirm`);
    expect([gone.status, gone.location]).toEqual([303, pathOf(page)]);
  });

  test("takes nothing else for an answer", async () => {
    const page = await world.open();
    await ask("POST", pathOf(page), { card: cards.careful });
    for (const form of [{}, { confirm: "maybe" }]) {
      const answer = await ask("POST", `${pathOf(page)}/confirm`, form);
      expect([answer.status, alertIn(answer.text)]).toEqual([400, "Confirm the payment or refuse it."]);
    }
    expect(await world.sandbox.lookUp(page.reference)).toMatchObject({ kind: "pending", word: "ongoing" });
  });

  test.each([
    ["yes", "Paid", "succeeded"],
    ["no", "Not paid", "failed"],
  ])("is all that the charge of a saved card has: %s", async (confirm, title, kind) => {
    const { token } = await world.saveCard(cards.careful);
    const charged = await world.charge(token, { reference: "sub-a" });
    const url = charged.kind === "state" && charged.state.kind === "confirmation" ? charged.state.url : "";
    const path = new URL(url).pathname;
    const hosted = path.replace("/confirm", "");
    expect((await ask("GET", hosted)).location).toBe(path);
    expect((await ask("POST", hosted, { card: cards.good })).location).toBe(path);
    const asked = await ask("GET", path);
    expect(asked.text).toContain("NGN 2,500.00");
    expect(asked.text).not.toContain("another card");
    const answered = await ask("POST", path, { confirm });
    expect([answered.status, answered.location]).toEqual([
      303,
      "https://relay.example/pay/done?trxref=sub-a&reference=sub-a",
    ]);
    expect(await world.sandbox.lookUp("sub-a")).toMatchObject({ kind });
    const after = await ask("GET", path);
    expect([after.status, after.text.includes("<form")]).toEqual([200, false]);
    expect(after.text).toContain(`<h1>${title}</h1>`);
    expect((await ask("POST", path, { confirm: "yes" })).location).toBe(answered.location);
    expect(await world.sandbox.lookUp("sub-a")).toMatchObject({ kind });
  });
});

describe("the routes", () => {
  test.each([
    ["GET", "/pay/sandbox/none"],
    ["POST", "/pay/sandbox/none"],
    ["GET", "/pay/sandbox/none/confirm"],
    ["POST", "/pay/sandbox/none/confirm"],
  ] as const)("%s %s is a page that says there is none", async (method, path) => {
    const form = { card: cards.good, confirm: "yes" };
    for (const sent of method === "POST" ? [form, {}] : [undefined]) {
      const answer = await ask(method, path, sent);
      expect(answer.status).toBe(404);
      expect(answer.text).toContain("<h1>No such payment</h1>");
      expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
      expect(policyOf(answer)).toContain("form-action 'self'; ");
    }
  });

  test("take a form of 4 KiB at most, as curl and browsers send it, and nothing else", async () => {
    const post = async (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) => {
      const answer = await ask("POST", pathOf(await world.open()), undefined, { body, headers });
      return [answer.status, answer.status < 400 ? "" : (JSON.parse(answer.text) as { code: string }).code];
    };
    const form = "application/x-www-form-urlencoded";
    const card = "card=4084+0840%208408+4081";
    expect(await post(card, { "Content-Type": form })).toEqual([303, ""]);
    expect(await post(card, { "Content-Type": `${form.toUpperCase()}; charset=UTF-8` })).toEqual([303, ""]);
    const full = `${card}&x=`.padEnd(4096, "x");
    expect(await post(full, { "Content-Type": form })).toEqual([303, ""]);
    expect(await post(`${full}x`, { "Content-Type": form })).toEqual([413, "body_too_large"]);
    for (const type of ["application/json", "multipart/form-data; boundary=x", "text/plain", `${form}s`]) {
      expect(await post(card, { "Content-Type": type })).toEqual([415, "unsupported_media_type"]);
    }
    const gzip = { "Content-Type": form, "Content-Encoding": "gzip" };
    expect(await post(card, gzip)).toEqual([415, "unsupported_media_type"]);
    expect(await post(new Uint8Array([0xff]), { "Content-Type": form })).toEqual([400, "invalid_utf8"]);
  });

  test("are no part of the published interface, and the log names neither the secret address nor the card", async () => {
    const endpoints = sandboxRoutes({ sandbox: world.sandbox });
    expect(endpoints.map((endpoint) => describeEndpoint(endpoint))).toEqual(endpoints.map(() => ({ hide: true })));
    const page = await world.open();
    await ask("GET", pathOf(page));
    await ask("POST", pathOf(page), { card: cards.good });
    const log = server.log.join("\n");
    expect(log).toContain("/pay/sandbox/:accessCode");
    expect(log).not.toContain(pathOf(page));
    expect(log).not.toContain(cards.good);
  });
});
