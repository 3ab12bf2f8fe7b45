import { expect } from "bun:test";
import type { Locator, Page, Request, Route } from "playwright-core";
import { call } from "../../src/cli/http-client.ts";

/** What people do on the pages of the dashboard, and what they see there. */

export const seeHeading = (page: Page, name: string) => page.getByRole("heading", { name, exact: true }).waitFor();

export const seeText = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor();

export const press = (page: Page | Locator, name: string | RegExp) =>
  page.getByRole("button", { name, exact: true }).click();

export const follow = (page: Page, name: string | RegExp) =>
  page.getByRole("link", { name, exact: true }).first().click();

export const seePath = (page: Page, path: string) => page.waitForURL((url) => url.pathname === path);

/** What has arrived is shown by then. */
export const nextFrame = (page: Page) =>
  page.evaluate("new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))");

export interface Credentials {
  readonly id: string;
  readonly password: string;
}

/** Makes a free account by the start page, and leaves its password on the screen of nobody. */
export async function createFreeAccount(page: Page, url: string): Promise<Credentials> {
  await page.goto(url);
  await press(page, "Create a free account");
  await seeHeading(page, "Your account is ready");
  const [id, password] = [page.getByLabel("Tenant id", { exact: true }), page.getByLabel("Password", { exact: true })];
  return { id: await id.inputValue(), password: await password.inputValue() };
}

export async function startFreeAccount(page: Page, url: string): Promise<Credentials> {
  const credentials = await createFreeAccount(page, url);
  await press(page, "I saved it");
  await seeHeading(page, "Send your first event");
  return credentials;
}

/** A free account of somebody who is signed in already, in the tab alone as by the dashboard itself. */
export async function signedIn(page: Page, url: string): Promise<Credentials & { token: string }> {
  const { json } = await ask(`${url}/v1/tenants`, "POST", null, {});
  const [id, password] = [String(json.tenant_id), String(json.password)];
  const token = await logIn(url, id, password);
  await page.addInitScript(
    `sessionStorage.getItem('postrider.session') ?? sessionStorage.setItem('postrider.session', '${token}')`,
  );
  return { id, password, token };
}

export async function signIn(page: Page, loginId: string, password: string): Promise<void> {
  await page.getByLabel("Tenant id or e-mail").fill(loginId);
  await page.getByLabel("Password").fill(password);
  await press(page, "Sign in");
}

interface Held {
  readonly untilAsked: Promise<unknown>;
  /** The page has it when this is over. */
  answer(): Promise<void>;
}

/** Holds the answer to the next such request back, as a slow line does. */
export async function hold(page: Page, url: string): Promise<Held> {
  const [asked, mayAnswer] = [Promise.withResolvers<Request>(), Promise.withResolvers<void>()];
  const keep = async (route: Route) => {
    const response = await route.fetch();
    asked.resolve(route.request());
    await mayAnswer.promise;
    await route.fulfill({ response });
  };
  await page.route(url, keep, { times: 1 });
  return {
    untilAsked: asked.promise,
    async answer() {
      mayAnswer.resolve();
      await (await (await asked.promise).response())?.finished();
    },
  };
}

/** What a server says that is too busy for one request. */
export const busy = "The server is busy; a retry is safe.";

/** Has the next such request refused. */
export const refuseOnce = (page: Page, url: string) =>
  page.route(url, (route) => route.fulfill({ status: 503, json: { message: busy, code: "busy" } }), { times: 1 });

/** Presses what is refused once: the dialog says why, since what is behind it is covered, and nothing has happened yet. */
export async function pressRefused(page: Page, url: string, name: string): Promise<void> {
  const dialog = page.getByRole("dialog");
  await refuseOnce(page, url);
  await press(dialog, name);
  await dialog.getByRole("alert").getByText(busy, { exact: true }).waitFor();
}

/** Pays on the sandbox's page, in the tab in which it was opened. */
export async function pay(page: Page, card: string): Promise<void> {
  await page.getByRole("radio", { name: new RegExp(`^${card}`) }).check();
  await page.getByRole("button", { name: "Pay NGN 100.00", exact: true }).click();
}

/** The token that the tab holds. */
export const tokenOf = async (page: Page): Promise<string> =>
  String(await page.evaluate("sessionStorage.getItem('postrider.session')")).split(" ")[0] ?? "";

/** One request beside the dashboard. */
export async function ask<T = Record<string, unknown>>(
  url: string,
  method: string,
  bearer: string | null,
  body?: unknown,
): Promise<{ status: number; json: T }> {
  const headers = bearer === null ? {} : { Authorization: `Bearer ${bearer}` };
  const { status, json } = await call(url, { method, headers, ...(body !== undefined && { body }) });
  return { status, json: json as T };
}

export async function logIn(url: string, loginId: string, password: string): Promise<string> {
  const { status, json } = await ask(`${url}/v1/tenants/auth/login`, "POST", null, { loginId, password });
  expect(status).toBe(200);
  return String(json.token);
}
