import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { type Look, noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import { press, seeHeading, seeText } from "./visitor.ts";

const server = await startExecutable();
const browser = openBrowser(server.url);

const sizes = [["desktop"], ["phone"]] as const;
/** What the server says before the operator has signed in, and to a wrong token. */
const refused = /^401: /;
const ended = "Your session has ended. Sign in again to go on.";

async function open(size: Look["size"], provoked: readonly RegExp[] = []): Promise<Page> {
  const page = await browser.page({ size, provoked: [refused, ...provoked] });
  await page.clock.install();
  await page.goto(`${server.url}/operator#servers`);
  await seeHeading(page, "Operator");
  return page;
}

async function signIn(page: Page, token = server.operatorToken()): Promise<void> {
  await page.getByLabel("Operator token").fill(token);
  await press(page, "Sign in");
}

async function openSignedIn(size: Look["size"], provoked?: readonly RegExp[]): Promise<Page> {
  const page = await open(size, provoked);
  await signIn(page);
  await seeServers(page);
  return page;
}

/** With what they are asked for first answered: a refusal would end the session that a test is about. */
async function seeServers(page: Page): Promise<void> {
  await seeHeading(page, "Servers");
  await seeText(page, "This server is alone");
}

/** The list is asked for each 3 s; nobody waits for that here. */
const passTime = (page: Page) => page.clock.fastForward(3_000);

/** On a phone it is behind "More". */
async function signOut(page: Page, size: Look["size"]): Promise<void> {
  if (size === "phone") await press(page, "More");
  await page.getByRole("button", { name: "Sign out" }).locator("visible=true").click();
}

const node = (slot: number, changes: object = {}) => ({
  slot,
  name: `relay-${slot + 1}`,
  listeners: [`10.0.0.${slot + 1}:8080`, `relay-${slot + 1}.internal.example.com:8080`],
  since: "2026-03-01T12:34:56.789Z",
  last_heartbeat_seconds: 1.2,
  lease_left_seconds: 18.8,
  schema: 1,
  alive: true,
  jobs: [],
  answering: false,
  ...changes,
});
const silent = { last_heartbeat_seconds: 12.1, lease_left_seconds: 7.9 };
const dead = { last_heartbeat_seconds: 23.4, lease_left_seconds: 0, alive: false };

/** What the server would answer if it had others beside it. */
async function answerWith(page: Page, ...nodes: object[]): Promise<void> {
  await page.route("**/operator/nodes", (route) => route.fulfill({ json: { shared: true, nodes } }));
  await passTime(page);
}

describe.skipIf(noBrowser !== null)("the operator's page", () => {
  test.each(sizes)("refuses a wrong token, takes the right one, and is left again, on %s", async (size) => {
    const page = await open(size);
    await seeText(page, "postrider operator token");
    await browser.inspect(page, "operator-sign-in");
    await signIn(page, "svc_op_wrong");
    await seeText(page, "This is not the operator token.");
    await browser.inspect(page, "operator-wrong-token");

    await signIn(page);
    await seeHeading(page, "Servers");
    await seeText(page, "This server is alone: everything is in its own data directory.");
    await seeText(page, "To add servers, move the data to PostgreSQL");
    await seeText(page, new URL(server.url).host.replace("localhost", "127.0.0.1"));
    await browser.inspect(page, "operator-alone");

    await signOut(page, size);
    await seeText(page, "You are signed out.");
    await page.reload();
    await seeHeading(page, "Operator");
    expect(await page.getByText("You are signed out.").count()).toBe(0);
  });

  test("has a bar on a phone that shows each of its places whole, and the others behind More", async () => {
    const page = await openSignedIn("phone");
    const bar = page.getByRole("navigation", { name: "Main" });
    const places = bar.locator("a, button").locator("visible=true");
    expect(await places.allInnerTexts()).toEqual(["Overview", "Accounts", "Backups", "Servers", "More"]);
    for (const place of await places.all()) {
      const { x = -1, width = 0 } = (await place.boundingBox()) ?? {};
      expect([x >= 0, x + width <= 360]).toEqual([true, true]);
    }
    await press(page, "More");
    const more = page.getByRole("dialog", { name: "Operator" });
    await more.waitFor();
    expect(await more.getByRole("link").allInnerTexts()).toEqual(["Audit", "Settings", "Payments"]);
    await browser.inspect(page, "operator-more");
    await more.getByRole("link", { name: "Settings" }).click();
    await seeHeading(page, "Settings");
    expect(await more.count()).toBe(0);
  });

  test("keeps its session where no script sees it, for a reload and for another tab", async () => {
    const page = await openSignedIn("desktop");
    const seen = "[document.cookie, ...Object.values(localStorage), ...Object.values(sessionStorage)].join()";
    expect(await page.evaluate<string>(seen)).toBe(",in");
    expect(await page.context().cookies(`${server.url}/operator`)).toMatchObject([
      { name: "postrider-operator", httpOnly: true, sameSite: "Strict", path: "/operator" },
    ]);
    expect(await page.context().cookies(`${server.url}/events`)).toEqual([]);
    await page.reload();
    await seeHeading(page, "Servers");
    const other = await page.context().newPage();
    await other.goto(`${server.url}/operator#servers`);
    await seeHeading(other, "Servers");
  });

  test.each(sizes)("asks for the token again when the session has ended, on %s", async (size) => {
    const page = await openSignedIn(size);
    await page.context().clearCookies();
    await passTime(page);
    await seeText(page, ended);
    await browser.inspect(page, "operator-ended");
    await signIn(page);
    await seeServers(page);
    await page.context().clearCookies();
    await page.reload();
    await seeText(page, ended);
  });

  test.each(sizes)("shows which servers live, which are silent, and which are dead, on %s", async (size) => {
    const page = await openSignedIn(size);
    await answerWith(page, node(0, { answering: true, jobs: ["biller", "janitor"] }), node(1, { jobs: ["replayer"] }));
    await seeText(page, "2 servers share this database, and all are alive.");
    await seeText(page, "payments, clean-up");
    await browser.inspect(page, "operator-servers");
    await answerWith(page, node(0, { answering: true }), node(1, silent), node(2));
    await seeText(page, "relay-2 does not reach the database, and starts no deliveries.");
    await seeText(page, "Silent, no heartbeat for 12 s");
    await answerWith(page, node(0, { answering: true }), node(1, silent), node(2, dead));
    await seeText(page, "relay-3 has not been heard of for 20 s. The others take over within seconds.");
    await seeText(page, "Lease ran out");
    await browser.inspect(page, "operator-servers-dead");
  });

  test.each(sizes)("keeps what it shows while the server cannot be reached, on %s", async (size) => {
    const page = await openSignedIn(size, [/ERR_FAILED/, /\/operator\/nodes/]);
    await page.route("**/operator/nodes", (route) => route.abort());
    await passTime(page);
    await seeText(page, "The server cannot be reached. What is shown may be out of date.");
    await seeText(page, "This server is alone");
    await browser.inspect(page, "operator-unreachable");
    await page.unroute("**/operator/nodes");
    await passTime(page);
    await page.getByText("The server cannot be reached.").waitFor({ state: "detached" });
  });

  test("weighs little, and nothing of it is in the dashboard", async () => {
    const page = await browser.page({ size: "desktop", provoked: [refused] });
    await page.goto(`${server.url}/operator`);
    await seeHeading(page, "Operator");
    const loaded = await page.evaluate<{ name: string; encodedBodySize: number }[]>(
      `[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
        .map(({ name, encodedBodySize }) => ({ name, encodedBodySize }))`,
    );
    const assets = loaded.filter(({ name }) => name.includes("/assets/"));
    expect(assets.map(({ name }) => /assets\/(\w+)-/.exec(name)?.[1])).toEqual(["operator", "operator"]);
    expect(loaded.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)).toBeLessThan(60_000);
    await page.goto(server.url);
    expect(await page.content()).not.toContain("assets/operator-");
  });
});
