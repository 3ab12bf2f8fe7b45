// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { beforeAll, expect } from "bun:test";
import type { TestAccount, TestApp } from "../support/test-app.ts";
import { type Scenario, scenarios, useServer } from "./scenario.ts";

/** Rules, section 9: `If-Match`, for a list that is replaced as a whole while others may do the same. */

interface World {
  server: TestApp;
  ada: TestAccount;
}

const path = "/v1/tenants/webhooks";
const server = useServer();
let ada: TestAccount;
beforeAll(async () => {
  ada = await server().account();
});
const world = (): World => ({ server: server(), ada });

const named = (name: string) => [{ webhook_url: "https://example.com/a", name }];
const tagNow = async () => (await ada.get(path)).headers.get("etag") ?? "";
let tagAsRead = "";

/** @param ifMatch called with the list's tag, quotation marks and all */
const saved = (ifMatch: (tag: string) => string): Scenario<World> => ({
  section: "rules 9",
  async given() {
    await ada.put(path, named("as read"));
    tagAsRead = await tagNow();
  },
  request: () => ada.put(path, named("new"), { "If-Match": ifMatch(tagAsRead) }),
  status: 200,
  body: named("new"),
  headers: { ETag: /^"[0-9a-z]+"$/ },
  // So the next change needs no reading.
  then: async (_, { headers }) => expect(headers.get("etag")).toBe(await tagNow()),
});

const leftAlone = (ifMatch: (tag: string) => string, status: number, code: string): Scenario<World> => ({
  section: "rules 9",
  async given() {
    await ada.put(path, named("as read"));
    tagAsRead = await tagNow();
    await ada.put(path, named("somebody else's"));
  },
  request: () => ada.put(path, named("new"), { "If-Match": ifMatch(tagAsRead) }),
  status,
  body: { code },
  then: async () => expect((await ada.get(path)).body).toMatchObject([{ name: "somebody else's" }]),
});

scenarios<World>("PUT /v1/tenants/webhooks", world, {
  "the list is as it was read": saved((tag) => tag),
  "one of several tags is the list's": saved((tag) => `"another", ${tag}`),
  "any list will do": saved(() => "*"),
  "the list has changed since": leftAlone((tag) => tag, 412, "webhooks_changed"),
  "a weak tag never matches": leftAlone((tag) => `W/${tag}`, 412, "webhooks_changed"),
  "a tag without quotation marks": leftAlone(() => "abc", 400, "invalid_request"),
});
