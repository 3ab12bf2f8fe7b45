import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  gate,
  type Hook,
  type Hooks,
  outcome,
  type Received,
  register,
  settled,
  startHooks,
  until,
} from "../support/api-server.ts";
import { startTestApp, type TestAccount } from "../support/test-app.ts";
import { provenSections, useServer } from "./scenario.ts";

/** Rules, section 14: order by key, over real HTTP. */
provenSections.add("rules 14");

let hooks: Hooks;
beforeAll(async () => {
  hooks = await startHooks();
});
afterAll(() => hooks.stop());

/** Two retries, 50 ms apart. */
const server = useServer({ random: () => 0.5 });

/** Names such as "x1", whose first letter is the ordering key. @returns their ids */
async function ingest(account: Pick<TestAccount, "apiKey">, names: readonly string[], to = server()) {
  const events = names.map((name) => ({ payload: { name }, ordering_key: name.slice(0, 1) }));
  const { status, body } = await to.request("POST", "/v1/ingest/batch", { token: account.apiKey, body: { events } });
  expect(status).toBe(202);
  return new Map(names.map((name, i): [string, string] => [name, body.eventIds[i]]));
}

const nameIn = ({ text }: Pick<Received, "text">): string => JSON.parse(text).payload.name;
const namesAt = ({ received }: Pick<Hook, "received">) => received.map(nameIn);

test("one that is not answered holds back its key alone, and what waits for it says so", async () => {
  const { answer, open } = gate();
  const account = await server().account();
  const hook = hooks.hook((response, nth, received) => {
    if (nameIn(received) === "x1" && typeof answer === "function") answer(response, nth, received);
    else response.writeHead(200).end();
  });
  await register(account, { webhook_url: hook.url, ordered: true });
  const ids = await ingest(account, ["x1", "x2", "y1", "y2", "x3", "y3"]);
  await hook.whenReceived(4);
  expect(namesAt(hook).filter((name) => name !== "x1")).toEqual(["y1", "y2", "y3"]);
  const [waiting] = (await account.get(`/v1/events/${ids.get("x2")}`)).body;
  const by = ids.get("x1");
  expect(waiting).toMatchObject({
    state: "PENDING",
    heldBack: true,
    heldBackBy: by,
    nextAttemptAt: null,
    orderingKey: "x",
  });
  const { body: whole } = await account.get("/v1/events/state/PENDING");
  expect(whole.events.map(({ heldBackBy }: { heldBackBy?: string }) => heldBackBy)).toEqual([by, by, undefined]);
  const { body: lean } = await account.get("/v1/events/state/PENDING?payload=false");
  expect(lean.events.map(({ heldBack = false }: { heldBack?: boolean }) => heldBack)).toEqual([true, true, false]);
  expect(lean.events.some((record: object) => "heldBackBy" in record)).toBe(false);
  open();
  await hook.whenReceived(6);
  expect(namesAt(hook).filter((name) => name.startsWith("x"))).toEqual(["x1", "x2", "x3"]);
  const last = await outcome(account, ids.get("x3") ?? "");
  expect(last).toMatchObject({ state: "DELIVERED", orderingKey: "x" });
  expect(last).not.toHaveProperty("heldBack");
  expect(last).not.toHaveProperty("heldBackBy");
});

test("each goes once the one before it has ended, after all its retries, delivered or not", async () => {
  const account = await server().account();
  const hook = hooks.hook((response, _, received) => {
    response.writeHead(nameIn(received) === "x1" ? 503 : nameIn(received) === "x2" ? 404 : 200).end();
  });
  await register(account, { webhook_url: hook.url, ordered: true });
  const ids = await ingest(account, ["x1", "x2", "x3"]);
  for (const [name, state] of [
    ["x1", "FAILED"],
    ["x2", "FAILED"],
    ["x3", "DELIVERED"],
  ] as const) {
    expect((await settled(account, ids.get(name) ?? ""))[0]?.state).toBe(state);
  }
  expect(namesAt(hook)).toEqual(["x1", "x1", "x1", "x2", "x3"]);
});

test("the order holds through a restart, and what is held back goes when it ends", async () => {
  const env = { POSTRIDER_PAUSED: "deliveries" };
  const first = await startTestApp({ env });
  const account = await first.account();
  const hook = hooks.hook();
  await register(account, { webhook_url: hook.url, ordered: true });
  await ingest(account, ["x1", "x2", "x3", "y1", "x4"], first);
  await first.stop({ keepData: true });

  const second = await startTestApp({ dataDir: first.dataDir, env });
  const request = (method: string, path: string, body?: unknown) =>
    second.request(method, path, { token: account.jwt, body });
  const heldBack = async (): Promise<string[]> =>
    (await request("GET", "/v1/events")).body.events.flatMap(
      (record: { heldBack?: true; originalPayload: { name: string } }) =>
        record.heldBack ? record.originalPayload.name : [],
    );
  expect(await heldBack()).toEqual(["x4", "x3", "x2"]);
  await register({ put: (path, body) => request("PUT", path, body) }, { webhook_url: hook.url, ordered: false });
  await until(heldBack, ({ length }) => length === 0);
  await second.stop();
});
