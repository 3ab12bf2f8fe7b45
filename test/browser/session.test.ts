import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { until } from "../support/api-server.ts";
import { noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import { openHidden } from "./sight.ts";
import { openAccount } from "./signed-in.ts";
import {
  ask,
  follow,
  hold,
  logIn,
  nextFrame,
  press,
  seeHeading,
  seeText,
  signedIn,
  signIn,
  startFreeAccount,
  tokenOf,
} from "./visitor.ts";

const server = await startExecutable();
const browser = openBrowser(server.url);

/** What the server says to a token that it no longer takes, also to a read that was on its way when the session ended. */
const refused = /^401: /;

/** A tab that is drawing or loading answers other tabs a little later than those that do nothing. */
const busyWhenAsked = `{
  const { postMessage } = BroadcastChannel.prototype;
  BroadcastChannel.prototype.postMessage = function (message) {
    setTimeout(() => postMessage.call(this, message), message.kind === "answered" ? 50 : 0);
  };
}`;

describe.skipIf(noBrowser !== null)("a session", () => {
  test("has its token in the tab alone: in no URL, no cookie, no storage that outlives the tab", async () => {
    const page = await browser.page({ size: "desktop" });
    const urls: string[] = [];
    page.on("request", (request) => urls.push(request.url()));
    const { password } = await startFreeAccount(page, server.url);
    await press(page, "Send it from here");
    await seeText(page, "Received");
    await page.goto(`${server.url}/plan`);
    await seeHeading(page, "Plan");

    const token = await tokenOf(page);
    expect(token.split(".").length).toBe(3);
    const secrets = [token, password, encodeURIComponent(password), "svc_sk_"];
    for (const url of urls) for (const secret of secrets) expect(url).not.toContain(secret);
    const beyondTheTab = "({ local: localStorage.length, cookies: document.cookie })";
    expect(await page.evaluate<unknown>(beyondTheTab)).toEqual({ local: 0, cookies: "" });
    expect(await page.context().cookies()).toEqual([]);
  });

  test("is that of a new tab too, at the view that was asked for, for as long as any tab has it", async () => {
    const page = await browser.page({ size: "desktop" });
    const { token } = await signedIn(page, server.url);
    await page.goto(`${server.url}/events`);
    await seeHeading(page, "Events");
    await press(page, "Show times in UTC");
    const pasted = await page.context().newPage();
    await pasted.goto(`${server.url}/plan`);
    await seeHeading(pasted, "Plan");
    expect(await tokenOf(pasted)).toBe(token);
    await pasted.getByRole("button", { name: "Show local times" }).waitFor();
    const beyondTheTab = "({ local: localStorage.length, cookies: document.cookie })";
    expect(await pasted.evaluate<unknown>(beyondTheTab)).toEqual({ local: 0, cookies: "" });

    // The tab that it was opened from is that of another account, by a login of its own.
    const other = await page.context().newPage();
    await other.addInitScript(busyWhenAsked);
    const { token: otherToken } = await signedIn(other, server.url);
    await other.goto(`${server.url}/keys`);
    await seeHeading(other, "API keys");
    const opening = other.context().waitForEvent("page");
    await other.getByRole("link", { name: "Webhooks" }).click({ modifiers: ["ControlOrMeta"] });
    const opened = await opening;
    await seeHeading(opened, "Webhooks");
    expect(await tokenOf(opened)).toBe(otherToken);

    await Promise.all([page, pasted, other, opened].map((tab) => tab.close()));
    const last = await page.context().newPage();
    await last.goto(`${server.url}/plan`);
    await seeHeading(last, "Sign in");
  });

  test("is not begun by a link: it carries nothing but the operator's view of an account", async () => {
    const page = await browser.page({ size: "desktop" });
    const { token } = await signedIn(page, server.url);
    const other = await browser.page({ size: "desktop" });
    await other.goto(`${server.url}/#view=${token}`);
    await seeHeading(other, "Webhooks that arrive");
    expect(new URL(other.url()).hash).toBe("");
    expect(await other.evaluate<unknown>("sessionStorage.length")).toBe(0);
  });

  test("that is signed out is so in every tab of the account, also for the tab that is opened next", async () => {
    const page = await browser.page({ size: "desktop", provoked: [refused] });
    const { id, password, token } = await signedIn(page, server.url);
    await page.goto(server.url);
    await seeHeading(page, "Overview");
    const other = await page.context().newPage();
    const ownToken = await logIn(server.url, id, password);
    await other.addInitScript(`sessionStorage.setItem('postrider.session', '${ownToken}')`);
    await other.goto(`${server.url}/keys`);
    await seeHeading(other, "API keys");
    await press(page, "Sign out");
    await seeText(other, "You are signed out.");
    for (const each of [token, ownToken]) await untilRevoked(each);
    const next = await page.context().newPage();
    await next.goto(`${server.url}/keys`);
    await seeHeading(next, "Sign in");
  });

  test("goes on after a reload", async () => {
    const page = await browser.page({ size: "phone" });
    await startFreeAccount(page, server.url);
    await page.reload();
    await seeHeading(page, "Send your first event");
  });

  test("that has ended says so, and one is at the same view after signing in again", async () => {
    const page = await browser.page({ size: "phone", provoked: [refused] });
    const { id, password } = await startFreeAccount(page, server.url);
    await page.goto(`${server.url}/keys`);
    await seeHeading(page, "API keys");
    const other = await logIn(server.url, id, password);
    await ask(`${server.url}/v1/tenants/auth/logout`, "POST", other, { all: true });
    await seeText(page, "Your session has ended. Sign in again to continue where you were.");
    await browser.inspect(page, "session-ended");
    await signIn(page, id, password);
    await seeHeading(page, "API keys");
  });

  test("that has ended in several tabs goes on in all of them after signing in once, without typing the id", async () => {
    const page = await browser.page({ size: "desktop", provoked: [refused] });
    const { id, password } = await startFreeAccount(page, server.url);
    const [second, stranger] = [await page.context().newPage(), await page.context().newPage()];
    await second.goto(`${server.url}/events`);
    await seeHeading(second, "Events");
    const behind = await page.context().newPage();
    await openHidden(behind);
    await behind.goto(`${server.url}/keys`);
    await seeHeading(behind, "API keys");
    await stranger.goto(server.url);
    await signedIn(stranger, server.url);
    await stranger.evaluate("sessionStorage.clear()");
    await stranger.goto(`${server.url}/keys`);
    await seeHeading(stranger, "API keys");
    const strangers = await tokenOf(stranger);
    const other = await logIn(server.url, id, password);
    await ask(`${server.url}/v1/tenants/auth/logout`, "POST", other, { all: true });
    for (const tab of [page, second]) {
      await seeText(tab, "Your session has ended.");
      expect(await tab.getByLabel("Tenant id or e-mail").inputValue()).toBe(id);
    }
    await page.getByLabel("Password").fill(password);
    await press(page, "Sign in");
    await seeHeading(second, "Events");
    for (const tab of [second, behind]) expect(await tokenOf(tab)).toBe(await tokenOf(page));
    expect(await tokenOf(stranger)).toBe(strangers);
  });

  test("that has ended is not gone on with in a tab where another account was made since", async () => {
    const page = await browser.page({ size: "desktop", provoked: [refused] });
    const { id, password, token } = await signedIn(page, server.url);
    await page.goto(`${server.url}/keys`);
    await seeHeading(page, "API keys");
    const other = await page.context().newPage();
    await other.goto(`${server.url}/events`);
    await seeHeading(other, "Events");
    await ask(`${server.url}/v1/tenants/auth/logout`, "POST", token, { all: true });
    await seeText(other, "Your session has ended.");
    await follow(page, "Create an account");
    await press(page, "Create a free account");
    await seeHeading(page, "Your account is ready");
    await signIn(other, id, password);
    await seeHeading(other, "Events");
    // What it has told the first tab is there by then.
    await nextFrame(page);
    await seeHeading(page, "Your account is ready");
    expect(await tokenOf(page)).toBe("null");
  });

  test("ends when its two hours are over and nobody used the tab", async () => {
    const page = await browser.page({ size: "desktop", provoked: [refused] });
    await page.clock.install();
    await startFreeAccount(page, server.url);
    const renewals = countRenewals(page);
    await page.clock.fastForward("01:59:00");
    await seeHeading(page, "Send your first event");
    await page.clock.fastForward("01:30");
    await seeText(page, "Your session has ended.");
    expect(renewals()).toBe(0);
    expect(await tokenOf(page)).toBe("null");
  });

  test("that ran out in a tab that was asleep says so when it is opened again", async () => {
    const page = await browser.page({ size: "desktop" });
    await startFreeAccount(page, server.url);
    await page.clock.install({ time: Date.now() + 3 * 60 * 60 * 1000 });
    await page.reload();
    await seeText(page, "Your session has ended.");
  });

  test("is renewed while the tab is used, from its second hour on", async () => {
    const page = await browser.page({ size: "desktop" });
    await page.clock.install();
    await startFreeAccount(page, server.url);
    const renewals = countRenewals(page);
    const first = await tokenOf(page);
    await page.clock.fastForward("00:58:00");
    await page.keyboard.press("Shift");
    expect(await tokenOf(page)).toBe(first);

    // Nobody was here for twenty minutes, and whoever comes back need not wait for the next look.
    await page.clock.fastForward("00:20:00");
    expect(renewals()).toBe(0);
    await page.keyboard.press("Shift");
    const second = await until(
      () => tokenOf(page),
      (token) => token !== first,
    );

    // Used shortly before its second hour, it is renewed by itself; the first one would have ended.
    await page.clock.fastForward("00:55:00");
    await page.keyboard.press("Shift");
    expect(renewals()).toBe(1);
    await page.clock.fastForward("00:10:00");
    const third = await until(
      () => tokenOf(page),
      (token) => token !== second,
    );
    await seeHeading(page, "Send your first event");
    expect((await ask(`${server.url}/v1/tenants/me`, "GET", third)).status).toBe(200);
  });

  test("that was renewed for a day says when it ends, and asks no more", async () => {
    const page = await browser.page({ size: "phone", provoked: [/^401: .*\/auth\/refresh$/] });
    await page.clock.install();
    await startFreeAccount(page, server.url);
    const renewals = countRenewals(page);
    await page.route("**/auth/refresh", (route) =>
      route.fulfill({
        status: 401,
        json: { code: "session_too_old", message: "The login is more than 24 hours old; log in again." },
      }),
    );
    await page.clock.fastForward("01:01:00");
    await page.keyboard.press("Shift");
    await seeText(page, "You signed in a day ago. This session ends");
    await browser.inspect(page, "session-last");
    await page.clock.fastForward("00:05:00");
    await page.keyboard.press("Shift");
    await seeHeading(page, "Send your first event");
    expect(renewals()).toBe(1);
  });

  test("that is signed out while it is renewed stays signed out", async () => {
    const page = await browser.page({ size: "desktop", provoked: [refused] });
    await page.clock.install();
    await startFreeAccount(page, server.url);
    const renewal = await hold(page, "**/auth/refresh");
    await page.clock.fastForward("01:01:00");
    await page.keyboard.press("Shift");
    await renewal.untilAsked;
    await press(page, "Sign out");
    await seeText(page, "You are signed out.");
    await renewal.answer();
    await page.clock.runFor(1000);
    await seeText(page, "You are signed out.");
    expect(await tokenOf(page)).toBe("null");
  });

  test("is not that of an account whose answer comes late, nor goes back to what it was before", async () => {
    const page = await browser.page({ size: "desktop" });
    const [account, next] = [await openAccount(server.url), await openAccount(server.url)];
    const { id } = account;
    // The overview reads the account where there are figures to show.
    await account.ingest({});
    await account.signIn(page);
    await page.goto(`${server.url}/keys`);
    await seeText(page, `free · ${id}`);

    const earlier = await hold(page, "**/v1/tenants/me");
    await follow(page, "Overview");
    await earlier.untilAsked;
    const tier = `${server.url}/operator/tenants/${id}/tier`;
    await ask(tier, "PUT", server.operatorToken(), { tier: "enterprise" });
    await seeText(page, `enterprise · ${id}`);
    await earlier.answer();
    await nextFrame(page);
    await seeText(page, `enterprise · ${id}`);

    await follow(page, "API keys");
    await seeHeading(page, "API keys");
    const late = await hold(page, "**/v1/tenants/me");
    await follow(page, "Overview");
    await late.untilAsked;
    await press(page, "Sign out");
    await seeText(page, "You are signed out.");
    await signIn(page, next.id, next.password);
    await seeText(page, `free · ${next.id}`);
    await late.answer();
    await nextFrame(page);
    await seeText(page, `free · ${next.id}`);
  });

  test("is over at the server too once one has signed out", async () => {
    const page = await browser.page({ size: "desktop", provoked: [refused] });
    await startFreeAccount(page, server.url);
    const token = await tokenOf(page);
    // The address of the start page, too.
    await follow(page, "Overview");
    await seeHeading(page, "Overview");
    await press(page, "Sign out");
    await seeText(page, "You are signed out.");
    await browser.inspect(page, "signed-out");
    await untilRevoked(token);
    await page.getByRole("link", { name: "Create an account" }).click();
    await page.getByRole("button", { name: "Create a free account" }).waitFor();
  });

  test("is over in every tab at once, even if the server does not answer", async () => {
    const page = await browser.page({ size: "desktop" });
    await signedIn(page, server.url);
    await page.context().route("**/auth/logout", () => {});
    await page.goto(`${server.url}/keys`);
    await seeHeading(page, "API keys");
    const other = await page.context().newPage();
    await other.goto(`${server.url}/plan`);
    await seeHeading(other, "Plan");
    await press(page, "Sign out");
    for (const tab of [page, other]) {
      await seeText(tab, "You are signed out.");
      expect(await tokenOf(tab)).toBe("null");
    }
  });

  test("that is signed out with the last look at its tab is over at the server too", async () => {
    const page = await browser.page({ size: "desktop" });
    const { token } = await signedIn(page, server.url);
    await page.goto(`${server.url}/keys`);
    await seeHeading(page, "API keys");
    await page.context().newPage();
    await press(page, "Sign out");
    await page.close();
    await untilRevoked(token);
  });

  test.each([-26, 26])("holds on a machine whose clock is %i hours off", async (hours) => {
    const page = await browser.page({ size: "desktop" });
    await page.clock.install({ time: Date.now() + hours * 60 * 60 * 1000 });
    await startFreeAccount(page, server.url);
    const renewals = countRenewals(page);
    await page.reload();
    await page.clock.fastForward("00:01:00");
    await page.keyboard.press("Shift");
    await seeHeading(page, "Send your first event");
    expect(renewals()).toBe(0);
  });
});

/** The tab does not wait for the server. */
const untilRevoked = (token: string) =>
  until(
    () => ask(`${server.url}/v1/tenants/me`, "GET", token),
    ({ status }) => status === 401,
  );

function countRenewals(page: Page): () => number {
  let renewals = 0;
  page.on("request", (request) => {
    if (request.url().endsWith("/auth/refresh")) renewals += 1;
  });
  return () => renewals;
}
