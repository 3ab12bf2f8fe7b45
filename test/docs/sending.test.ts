import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { settled, until } from "../support/api-server.ts";
import { startTestApp, type TestAccount, type TestApp } from "../support/test-app.ts";
import { documentAt, example } from "./documents.ts";

describe("the commands of Sending events, as written and in their order", () => {
  let server: TestApp;
  let account: TestAccount;
  let inbox: string;

  beforeAll(async () => {
    server = await startTestApp();
    account = await server.account();
    inbox = (await account.get("/v1/inbox")).body.url;
  });
  afterAll(() => server.stop());

  /** Runs an example; the bodies that it prints, one after the other, with any heads before them. */
  async function printed(name: string): Promise<string> {
    const shell = Bun.spawn(
      ["bash", "-euo", "pipefail", "-c", example(name).replaceAll("http://localhost:8080", server.url)],
      { env: { ...process.env, TOKEN: account.jwt, KEY: account.apiKey, INBOX: inbox }, stdout: "pipe" },
    );
    const output = await new Response(shell.stdout).text();
    expect(await shell.exited).toBe(0);
    return output;
  }

  const recordOf = async (eventId: string) => (await settled(account, eventId))[0];

  test("every one of them is run here", () => {
    const named = [...documentAt("docs/sending.md").matchAll(/<!-- example: (\S+) -->/g)].map(([, name]) => name);
    expect(named).toEqual([
      "sending-inbox",
      "sending-event",
      "sending-batch",
      "sending-once",
      "sending-webhook",
      "sending-failing",
      "sending-find",
      "sending-replay",
      "sending-rotate",
    ]);
  });

  test("the inbox becomes the webhook", async () => {
    expect(JSON.parse(await printed("sending-inbox"))).toEqual([{ webhook_url: inbox, name: "Shop" }]);
  });

  test("an event is accepted with its type and its ordering key", async () => {
    const { status, eventId } = JSON.parse(await printed("sending-event"));
    expect(status).toBe("accepted");
    expect(await recordOf(eventId)).toMatchObject({
      state: "DELIVERED",
      eventType: "order.created",
      orderingKey: "order-1042",
    });
  });

  test("a batch is accepted, with the types of the payloads", async () => {
    const { eventIds } = JSON.parse(await printed("sending-batch"));
    const records = await Promise.all(eventIds.map(recordOf));
    expect(records).toMatchObject([
      { eventType: "order.created", orderingKey: "order-1043" },
      { eventType: "order.paid", orderingKey: "order-1043" },
    ]);
  });

  test("an idempotency key makes a repetition the same event", async () => {
    expect(await printed("sending-once")).toBe(await printed("sending-once"));
  });

  test("a webhook has the settings that it was given", async () => {
    const output = await printed("sending-webhook");
    const [saved, shown] = output.split("][");
    expect(JSON.parse(`${saved}]`)).toEqual([{ webhook_url: inbox, name: "Shop" }]);
    expect(JSON.parse(`[${shown}`)).toMatchObject([
      {
        ...{ url: inbox, state: "active", event_types: ["order.*"], rate_limit: 50, max_concurrency: null },
        ...{ paused: false, ordered: true, headers: { "X-Shop": "••••" } },
      },
    ]);
  });

  test("what fails is found, counted and sent again", async () => {
    const failing = await printed("sending-failing");
    const eventId = /"eventId":"(evt_\w+)"/.exec(failing)?.[1] ?? "";
    expect(await recordOf(eventId)).toMatchObject({ state: "FAILED", statusCode: 400 });
    const found = await printed("sending-find");
    expect(found).toContain('"waiting":0,"failed":1');
    expect(found.split(`"eventId":"${eventId}"`)).toHaveLength(3);
    const output = await printed("sending-replay");
    expect(output).toContain('{"selected":1}');
    expect(output).toContain("202 Accepted");
    const [, replay = ""] = /location: (\S+)/i.exec(output) ?? [];
    const { body } = await until(
      () => account.get(replay),
      (answer) => answer.body.status === "completed",
    );
    expect(body).toMatchObject({ selected: 1, delivered: 1, filter: { type: "order.refunded", status: 400 } });
  });

  test("keys and the secret are rotated, each with an overlap", async () => {
    const secretOf = async () => (await account.get("/v1/tenants/signing-secret")).body;
    const before = await secretOf();
    const output = await printed("sending-rotate");
    expect(output).toMatch(/"key":"svc_sk_\w+"/);
    expect(await secretOf()).not.toEqual(before);
    const keys: { key: string }[] = (await account.get("/v1/tenants/api-keys")).body;
    expect(keys.find(({ key }) => key === account.apiKey)).toMatchObject({ expires_at: expect.any(String) });
    expect(keys).toHaveLength(2);
    const published = (await account.get(`/v1/tenants/${account.id}/jwks.json`)).body.keys;
    expect(published).toHaveLength(2);
  });
});
