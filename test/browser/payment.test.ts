import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { call } from "../../src/cli/http-client.ts";
import { noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";

const server = await startExecutable();
const browser = openBrowser(server.url);

describe.skipIf(noBrowser !== null)("the payment page", () => {
  test.each(["desktop", "phone"] as const)(
    "says at the top whom one pays and how much, and that no real money moves, on a %s",
    async (size) => {
      const page = await browser.page({ size });
      await page.goto((await openAccount()).paymentUrl);
      await seePath(page, "/pay/sandbox/");
      for (const text of ["To Postrider", "NGN 100.00", "no real money"]) {
        const box = await page.getByText(text).first().boundingBox();
        expect(box?.y).toBeWithin(0, 120);
      }
      await browser.inspect(page, "payment");
    },
  );

  test("takes a payment by keyboard alone, and the account is active", async () => {
    const { id, paymentUrl } = await openAccount();
    const page = await browser.page({ size: "desktop" });
    await page.goto(paymentUrl);
    const hostedPage = page.url();
    await press(page, "Tab");
    await seeFocus(page, "radio", /^Good card/);
    await press(page, "ArrowDown");
    await seeFocus(page, "radio", /^Careful bank/);
    await press(page, "ArrowUp");
    await press(page, "Tab");
    await seeFocus(page, "button", "Pay NGN 100.00");
    await browser.inspect(page, "payment-by-keyboard");
    expect(await statusOf(id)).toBe("pending_verification");
    await press(page, "Enter");

    // It goes on by itself, in seconds: not while it is looked at.
    await page.route("**/plan?payment=returned", (route) => route.fulfill({ status: 204 }));
    await seeReturn(page);
    await browser.inspect(page, "payment-return");
    await untilActive(id);

    await page.goto(paymentUrl);
    await seeHeading(page, "The card is verified");
    await browser.inspect(page, "payment-verified");

    await page.goto(hostedPage);
    await seeHeading(page, "Paid");
    await browser.inspect(page, "payment-paid");
    await page.getByRole("link", { name: "Back to Postrider" }).click();
    await seeReturn(page);
  });

  test("tells in an alert why a card was declined, and takes a second one", async () => {
    const { id, paymentUrl } = await openAccount();
    const page = await browser.page({ size: "phone" });
    await page.goto(paymentUrl);
    await pay(page, "Insufficient funds");
    await seeAlert(page, "Insufficient funds. Nothing was charged.");
    expect(await page.title()).toStartWith("Insufficient funds. Nothing was charged.");
    expect(await statusOf(id)).toBe("pending_verification");
    await browser.inspect(page, "payment-declined");

    await pay(page, "Good card");
    await seeReturn(page);
    await untilActive(id);
  });

  test("leads to the bank of a careful customer, who may say no and then yes", async () => {
    const { id, paymentUrl } = await openAccount();
    const page = await browser.page({ size: "phone" });
    await page.goto(paymentUrl);
    await pay(page, "Careful bank");
    await seeHeading(page, "Confirm NGN 100.00");
    await page.getByText("your card ending in 4796").waitFor();
    await browser.inspect(page, "payment-bank");
    await page.getByRole("button", { name: "Refuse it" }).click();
    await seeAlert(page, "Not confirmed. Nothing was charged.");

    await pay(page, "Careful bank");
    await page.getByRole("link", { name: "Use another card" }).click();
    await seeHeading(page, "NGN 100.00");
    await pay(page, "Careful bank");
    await page.getByRole("button", { name: "Confirm the payment" }).click();
    await seeReturn(page);
    await untilActive(id);
  });

  test("gives the money of a card that cannot be charged again back, and takes another card", async () => {
    const { id, paymentUrl } = await openAccount();
    const page = await browser.page({ size: "desktop" });
    await page.goto(paymentUrl);
    await pay(page, "Once only");
    await seeReturn(page);
    await server.logged("payment.refunded");
    expect(await statusOf(id)).toBe("pending_verification");

    await page.goto(paymentUrl);
    await pay(page, "Good card");
    await seeReturn(page);
    await untilActive(id);
  });

  test("takes the number of a test card that somebody types, and no other", async () => {
    const { id, paymentUrl } = await openAccount();
    const page = await browser.page({ size: "phone" });
    await page.goto(paymentUrl);
    await page.getByText("Enter the number of a test card").click();
    await typeNumber(page, "4111 1111 1111 1111");
    await seeAlert(page, "This is a sandbox: pick one of the test cards.");
    await browser.inspect(page, "payment-typed");

    await typeNumber(page, "4084084084084081");
    await seeReturn(page);
    await untilActive(id);
  });

  test("can be left without paying, and opened again", async () => {
    const { id, paymentUrl } = await openAccount();
    const page = await browser.page({ size: "phone" });
    await page.goto(paymentUrl);
    const hostedPage = page.url();
    await page.getByRole("link", { name: "Cancel" }).click();
    await seeHeading(page, "The payment was cancelled");
    await browser.inspect(page, "payment-cancelled");
    expect(await statusOf(id)).toBe("pending_verification");
    await page.goto(paymentUrl);
    expect(page.url()).toBe(hostedPage);
  });

  test("says so when an address leads nowhere", async () => {
    const page = await browser.page({ size: "phone" });
    await page.goto(`${server.url}/pay/nothing`);
    await seeHeading(page, "There is nothing to pay here");
    await browser.inspect(page, "payment-unknown");
    await page.goto(`${server.url}/pay/sandbox/nothing`);
    await seeHeading(page, "No such payment");
    await browser.inspect(page, "payment-unknown-sandbox");
  });
});

// ---------------------------------------------------------------- the account

async function openAccount() {
  const name = `browser-${crypto.randomUUID().slice(0, 8)}`;
  const body = { tier: "pro", name, email: `${name}@example.com`, password: "A stamp for 1 letter!" };
  const { status, json } = await call(`${server.url}/v1/tenants`, { method: "POST", body });
  expect({ status, json }).toMatchObject({ status: 201 });
  const { tenant_id: id, payment_url: paymentUrl } = json as { tenant_id: string; payment_url: string };
  return { id, paymentUrl };
}

async function statusOf(id: string): Promise<unknown> {
  const { json } = await call(`${server.url}/v1/tenants/${id}/status`);
  return (json as { status: string }).status;
}

/** The processor's callback is what makes an account active, a moment after the customer is back. */
async function untilActive(id: string): Promise<void> {
  await server.logged("payment.settled");
  expect(await statusOf(id)).toBe("active");
}

// ---------------------------------------------------------------- the customer

const press = (page: Page, key: string) => page.keyboard.press(key);

async function pay(page: Page, card: string): Promise<void> {
  await page.getByRole("radio", { name: new RegExp(`^${card}`) }).check();
  await page.getByRole("button", { name: "Pay NGN 100.00", exact: true }).click();
}

async function typeNumber(page: Page, number: string): Promise<void> {
  await page.getByRole("textbox", { name: "Card number" }).fill(number);
  await page.getByRole("button", { name: "Pay NGN 100.00 with this card" }).click();
}

const seePath = (page: Page, path: string) => page.waitForURL((url) => url.pathname.startsWith(path));

const seeHeading = (page: Page, name: string) => page.getByRole("heading", { name, exact: true }).waitFor();

const seeAlert = (page: Page, text: string) => page.getByRole("alert").getByText(text, { exact: true }).waitFor();

const seeFocus = (page: Page, role: "button" | "radio", name: string | RegExp) =>
  page.getByRole(role, { name }).and(page.locator(":focus")).waitFor();

async function seeReturn(page: Page): Promise<void> {
  await seePath(page, "/pay/return");
  await seeHeading(page, "Your payment is being checked");
}
