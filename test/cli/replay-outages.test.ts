import { describe, expect, test } from "bun:test";
import type { Account } from "../../src/cli/client/account.ts";
import type { Call } from "../../src/cli/client/call.ts";
import { TemporaryFailure } from "../../src/cli/client/failure.ts";
import type { Reply } from "../../src/cli/client/server.ts";
import { Interrupted } from "../../src/cli/interrupted.ts";
import { cancelReplay, followReplay } from "../../src/cli/replay/follow.ts";
import type { ReplayRow } from "../../src/cli/replay/progress.ts";
import { createFastClock } from "../support/fast-clock.ts";
import { createScriptedIo } from "../support/scripted-io.ts";
import { type } from "../support/typed.ts";

const clock = createFastClock(100);
const away = () => new TemporaryFailure("cannot be reached", { retryAfterMs: null, mayHaveArrived: false });

const completed: ReplayRow = {
  id: "rpl_1",
  kind: "failed",
  replayGroupId: "again",
  status: "completed",
  selected: 5,
  queued: 4,
  delivered: 4,
  failed: 0,
  superseded: 0,
  skipped: 1,
  createdAt: "2026-03-01T12:00:00.000Z",
  completedAt: "2026-03-01T12:00:01.000Z",
};
const running: ReplayRow = { ...completed, status: "running", delivered: 0, skipped: 0, completedAt: null };
const all: ReplayRow = { ...completed, queued: 5, delivered: 5, skipped: 0 };
const ended = "rpl_1 completed: 5 events; 4 delivered, 1 skipped";

const replyWith = (json: unknown): Reply => ({
  status: 200,
  json,
  text: JSON.stringify(json),
  location: null,
  retryAfterMs: null,
  etag: null,
  serverTime: null,
});

/** Shows the replay as it is from one look to the next, and answers other requests as told. */
function accountOf(looks: readonly ReplayRow[], others: Partial<Pick<Account, "call" | "callPatiently">>): Account {
  let look = 0;
  const never: Call = () => Promise.reject(away());
  const { call = never, callPatiently = never } = others;
  const next = () => looks[Math.min(look++, looks.length - 1)];
  return {
    url: "https://postrider.example",
    signal: new AbortController().signal,
    linkTo: (id) => id,
    callOnce: never,
    call,
    callPatiently: async (method, path) =>
      path.startsWith("/v1/events/replays/") ? replyWith(next()) : callPatiently(method, path),
  };
}

async function follow(account: Account, json = false) {
  const { io, out, err } = createScriptedIo();
  return { code: await followReplay("rpl_1", account, { io, clock, json }), out, err };
}

describe("a look-up for a hint that fails", () => {
  test("leaves the result of the replay as it is", async () => {
    expect(await follow(accountOf([completed], {}))).toEqual({ code: 1, out: [ended], err: [] });
    expect(await follow(accountOf([completed], {}), true)).toEqual({
      code: 1,
      out: [JSON.stringify(completed)],
      err: [],
    });
  });

  test("does not end the following", async () => {
    const done = "rpl_1 completed: 5 events; 5 delivered";
    expect(await follow(accountOf([running, running, all], {}))).toEqual({ code: 0, out: [done], err: [] });
  });

  test("does not keep `replay show` and `--preview` from their answers", async () => {
    const server = Bun.serve({
      port: 0,
      fetch(request) {
        const { pathname } = new URL(request.url);
        if (pathname === "/v1/tenants/me") return Response.json({ tenant_id: "tnt_1" });
        if (pathname.endsWith("/preview")) return Response.json({ selected: 5 });
        if (pathname.startsWith("/v1/events/replays/")) return Response.json(completed);
        return Response.json({ code: "forbidden", message: "Not with this key." }, { status: 403 });
      },
    });
    try {
      for (const [line, shown] of [
        ["replay show rpl_1", "4 delivered, 1 skipped\n"],
        ["replay all --preview", "5 events match."],
      ] as const) {
        const { ended, out, err } = type(server.url.origin, { jwt: "a.b.c" }, line.split(" "));
        expect({ line, code: await ended, err }).toEqual({ line, code: 0, err: [] });
        expect(out.join("\n")).toContain(shown);
      }
    } finally {
      await server.stop(true);
    }
  });
});

test("a hint while following is looked up for as long as it takes", async () => {
  const webhook = { id: "wh_1", url: "https://shop.example", name: "", state: "paused", event_types: null };
  const callPatiently: Call = async (_, path) =>
    replyWith(path.startsWith("/v1/tenants/webhooks") ? [webhook] : { events: [{ eventId: "evt_1" }], total: 1 });
  const { code, err } = await follow(accountOf([running, running, all], { callPatiently }));
  expect({ code, err }).toEqual({
    code: 0,
    err: ["Webhook wh_1 is paused. Try: postrider webhooks resume wh_1"],
  });
});

test("Ctrl+C during the look-up after the end prints the result, and does not say that the replay keeps running", async () => {
  const call: Call = () => Promise.reject(new Interrupted("SIGINT"));
  expect(await follow(accountOf([completed], { call }))).toEqual({ code: 130, out: [ended], err: [] });
});

test.each([
  ["an outage", away],
  ["Ctrl+C", () => new Interrupted("SIGINT")],
])("%s while a cancelled replay is watched leaves it cancelled, as the server has answered", async (_, failure) => {
  const cancelled: ReplayRow = { ...running, status: "cancelled" };
  const call: Call = async (method) => {
    if (method === "DELETE") return replyWith(cancelled);
    throw failure();
  };
  expect((await cancelReplay("rpl_1", accountOf([], { call }), clock)).json).toEqual(cancelled);
});
