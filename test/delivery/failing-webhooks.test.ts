import { describe, expect, test } from "bun:test";
import { createFailingWebhooks, type FailingWebhooksDeps } from "../../src/delivery/failing-webhooks.ts";
import { afterFailures, type Failing, type Failures } from "../../src/domain/failing-webhook.ts";
import type { FailureCode } from "../../src/domain/failure.ts";
import { formatIso } from "../../src/lib/iso-time.ts";
import { createLog } from "../../src/lib/log.ts";
import type { Settlement } from "../../src/store/deliveries.ts";
import type { FailingWebhookVerbs, KnownFailing } from "../../src/store/failing-webhooks.ts";
import { dueDelivery } from "../support/due-delivery.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { registered } from "../support/tenant-state.ts";

const ref = { tenantKey: 1, webhookKey: 1 };
const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** It, over a store that keeps one webhook; what it writes is noted in `written`. */
function setUp(
  changes: Partial<FailingWebhookVerbs> = {},
  disableAfterMs: number | null = 5 * day,
  clock = createFakeClock(),
) {
  const policy = { disableAfterMs };
  const written: string[] = [];
  const told: Record<string, unknown>[] = [];
  const events: Record<string, unknown>[] = [];
  const given: Failures[] = [];
  const lines: { event: string }[] = [];
  let failing: Failing | null = null;
  const log = createLog({
    level: "debug",
    format: "json",
    now: clock.now,
    out: (line) => void lines.push(JSON.parse(line)),
  });
  const store: FailingWebhooksDeps["store"] = {
    failingWebhooks: async () => [],
    async noteFailures(_, failures) {
      const isNew = failing === null;
      given.push(failures);
      const effect = afterFailures(failing, failures, policy);
      failing = effect.failing;
      written.push(effect.disabled ? "disabled" : "failing");
      const webhook = registered(1, { failing, disabled: effect.disabled });
      return { ...effect, isNew, webhook };
    },
    async noteSuccess() {
      written.push("well");
      failing = null;
      return registered(1);
    },
    ...changes,
  };
  const failingWebhooks = createFailingWebhooks({
    store,
    clock,
    log,
    hub: { publish: (_tenant, _kind, data) => void told.push(data()) },
    policy,
    tell: async ({ type, fields }) => events.push({ type, ...fields }) > 0,
    isOutbound: ({ url }) => !url.includes("inbox"),
  });

  /** An attempt to a webhook at this host ends now. */
  function hear(status: number | FailureCode, { host = "a.example", webhookKey = 1 } = {}): void {
    const isAnswered = typeof status === "number";
    const delivered = isAnswered && status < 300;
    const settlement: Settlement = {
      delivery: { ...dueDelivery({ webhookKey }), url: `https://${host}/hook` },
      attempt: {
        startedAt: clock.now(),
        durationMs: 1,
        statusCode: isAnswered ? status : null,
        error: delivered ? null : "failed",
        errorCode: delivered ? null : isAnswered ? "http_status" : status,
        responseBody: null,
        answerHead: null,
      },
      next: delivered ? { kind: "delivered" } : status === 410 ? { kind: "failed" } : { kind: "retry", at: 0 },
    };
    failingWebhooks.attempted(settlement);
  }

  /** And what is to be noted of it is noted. */
  async function attempt(...heard: Parameters<typeof hear>): Promise<void> {
    hear(...heard);
    await failingWebhooks.flush();
  }

  const rows = () => given.map(({ gone }) => gone.length);
  const since = () => failing?.since;
  return { clock, store, hear, attempt, failingWebhooks, written, told, events, given, rows, lines, since };
}

describe("what is written", () => {
  test("nothing of a webhook that is well", async () => {
    const { attempt, clock, written } = setUp();
    for (let i = 0; i < 100; i++) {
      await attempt(200);
      clock.advance(hour);
    }
    expect(written).toEqual([]);
  });

  test("nothing of one that answers again within a minute, however often it fails", async () => {
    const { attempt, clock, written } = setUp();
    for (let i = 0; i < 100; i++) {
      await attempt(503);
      clock.advance(minute - 1);
      await attempt(503);
      await attempt(200);
    }
    expect(written).toEqual([]);
  });

  test("of one that fails, only what changes something: thousands of attempts are four writes", async () => {
    const { attempt, clock, written, told, events } = setUp();
    const begin = clock.now();
    for (let i = 0; i < 5 * 24 * 60; i++) {
      await attempt("timeout");
      clock.advance(minute);
    }
    expect(written).toEqual(["failing", "failing", "failing"]);
    await attempt("timeout");
    expect(written).toEqual(["failing", "failing", "failing", "disabled"]);
    expect(told.map(({ state }) => state)).toEqual(["active", "active", "active", "disabled"]);
    const failing = { type: "postrider.webhook.failing", failing_since: formatIso(begin) };
    const end = formatIso(begin + 5 * day);
    expect(events).toEqual([
      { ...failing, disables_at: end },
      { ...failing, disables_at: end },
      { ...failing, type: "postrider.webhook.disabled", disabled_at: end, disabled_reason: "failing" },
    ]);
  });

  test("of one that the operator's proxy does not let through, nothing at all", async () => {
    const { attempt, clock, written } = setUp();
    for (let i = 0; i < 6 * 24; i++) {
      await attempt("proxy_failed");
      clock.advance(hour);
    }
    expect(written).toEqual([]);
  });

  test("that one works again, once", async () => {
    const { attempt, clock, written, told } = setUp();
    await attempt(503);
    clock.advance(minute);
    await attempt(503);
    for (let i = 0; i < 3; i++) await attempt(200);
    expect(written).toEqual(["failing", "well"]);
    expect(told.map(({ failingSince }) => failingSince === null)).toEqual([false, true]);
  });

  test.each([
    [
      [410, 410, 410],
      ["failing", "disabled"],
    ],
    [[410, 503, 410, 200, 410], []],
    [
      [410, 410, 503, 410, 410],
      ["failing", "failing", "failing"],
    ],
  ])("of %j", async (answers, expected) => {
    const { attempt, written } = setUp();
    for (const answer of answers) await attempt(answer);
    expect(written).toEqual(expected);
  });
});

describe("a webhook that is gone", () => {
  const { tenantKey } = dueDelivery();
  const ways: [string, (all: ReturnType<typeof setUp>) => void][] = [
    ["removed", ({ failingWebhooks }) => failingWebhooks.forget([1])],
    ["of a deleted account", ({ failingWebhooks }) => failingWebhooks.forgetTenant(tenantKey)],
  ];
  test.each(ways)("(%s) is not remembered for what ends after that", async (_, forget) => {
    const all = setUp();
    const { attempt, clock, failingWebhooks, written } = all;
    await attempt(503);
    forget(all);
    failingWebhooks.stands({ tenantKey, webhookKey: 1 }, { as: "failing", at: clock.now() });
    await attempt(503);
    clock.advance(hour);
    await attempt(503);
    await attempt(200);
    expect(written).toEqual([]);
  });

  test.each(ways)("(%s) was never gone, if the store has gone back", async (_, forget) => {
    const all = setUp();
    const { attempt, clock, failingWebhooks, written } = all;
    forget(all);
    failingWebhooks.forgetAll();
    await attempt(503);
    clock.advance(hour);
    await attempt(503);
    expect(written).toEqual(["failing"]);
  });
});

describe("once the clock is set back", () => {
  test("a success ends the failures that were noted while it was ahead", async () => {
    const noted: number[] = [];
    const { attempt, clock, since } = setUp({
      async noteSuccess(_, at) {
        noted.push(at);
        return null;
      },
    });
    await attempt(503);
    clock.advance(minute + 1);
    await attempt(503);
    const failingSince = since() ?? 0;
    clock.step(-2 * hour);
    await attempt(200);
    expect(noted).toEqual([failingSince]);
  });

  test("a failure that began while it was ahead is noted after a minute, and from now on", async () => {
    const { attempt, clock, written, since } = setUp();
    await attempt(503);
    clock.step(-2 * day);
    const setBackAt = clock.now();
    await attempt(503);
    clock.advance(minute);
    await attempt(503);
    expect({ written, since: since() }).toEqual({ written: ["failing"], since: setBackAt });
  });
});

test("one that is never disabled is not written for each 410", async () => {
  const { attempt, written } = setUp({}, null);
  for (let i = 0; i < 10; i++) await attempt(410);
  expect(written).toEqual(["failing", "failing"]);
});

describe("what others have noted", () => {
  test("is known from the start, so a success is noted", async () => {
    const known = { tenantKey: 1, webhookKey: 1, since: 0, goneInARow: 2 };
    const { failingWebhooks, attempt, written } = setUp({ failingWebhooks: async () => [known] });
    await failingWebhooks.start();
    await attempt(200);
    expect(written).toEqual(["well"]);
  });

  test("is known when it is told", async () => {
    const { failingWebhooks, attempt, written } = setUp();
    failingWebhooks.stands(ref, { as: "failing", at: 0 });
    await attempt(200);
    failingWebhooks.stands(ref, { as: "failing", at: 1 });
    failingWebhooks.stands(ref, { as: "well", at: 1 });
    await attempt(200);
    expect(written).toEqual(["well"]);
  });

  test("ends no failure that came after it", async () => {
    const { failingWebhooks, clock, attempt, written, rows } = setUp();
    await attempt(410);
    clock.advance(10);
    const wellAt = clock.now();
    await attempt(410);
    failingWebhooks.stands(ref, { as: "well", at: wellAt });
    await attempt(410);
    expect([written, rows()]).toEqual([
      ["failing", "failing"],
      [2, 2],
    ]);
    failingWebhooks.stands(ref, { as: "well", at: wellAt });
    await attempt(410);
    expect(written.at(-1)).toBe("disabled");
  });

  test("is its own success, long after the store was told: the third 410 from then on disables", async () => {
    const held = Promise.withResolvers<void>();
    const { failingWebhooks, hear, attempt, written } = setUp({
      async noteSuccess(webhook, at) {
        await held.promise;
        failingWebhooks.stands(webhook, { as: "well", at });
        written.push("well");
        return registered(1);
      },
    });
    await attempt(410);
    await attempt(410);
    hear(200);
    hear(410);
    held.resolve();
    await failingWebhooks.flush();
    await attempt(410);
    expect(written).toEqual(["failing", "well", "failing"]);
    await attempt(410);
    expect(written.at(-1)).toBe("disabled");
  });

  test("ends a row of 410s that the store knows to be broken by others: the next ones are counted anew", async () => {
    const { attempt, clock, given, written } = setUp({
      async noteFailures(_, failures) {
        const left = given.length === 1 ? failures.gone.slice(-1) : failures.gone;
        const effect = afterFailures(null, { ...failures, gone: left }, { disableAfterMs: day });
        given.push(failures);
        written.push(effect.disabled ? "disabled" : "failing");
        return { ...effect, isNew: false, webhook: registered(1, { failing: effect.failing }) };
      },
    });
    for (let i = 0; i < 5; i++) {
      await attempt(410);
      clock.advance(1);
    }
    expect(given.map(({ gone }) => gone.length)).toEqual([2, 3, 2, 3]);
    expect(written).toEqual(["failing", "failing", "failing", "disabled"]);
  });

  test("is older than a success that was heard of while it was being asked for", async () => {
    const asked = Promise.withResolvers<KnownFailing[]>();
    const { failingWebhooks, hear, attempt, written } = setUp({ failingWebhooks: () => asked.promise });
    const started = failingWebhooks.start();
    hear(200);
    asked.resolve([{ ...ref, since: 0, goneInARow: 2 }]);
    await started;
    await attempt(410);
    expect(written).toEqual(["well"]);
  });

  test("is asked for again, if the store could not be asked", async () => {
    let asked = 0;
    const { failingWebhooks, attempt, clock, written } = setUp({
      async failingWebhooks() {
        if (++asked === 1) throw new Error("away");
        return [{ tenantKey: 1, webhookKey: 1, since: 0, goneInARow: 0 }];
      },
    });
    await failingWebhooks.start();
    await attempt(200);
    expect([asked, written]).toEqual([1, []]);
    clock.advance(5_000);
    await attempt(200);
    await attempt(200);
    expect([asked, written]).toEqual([2, ["well"]]);
  });
});

test("a success that could not be noted is noted by the next one", async () => {
  let isAway = true;
  const { attempt, clock, written, lines } = setUp({
    async noteSuccess() {
      if (isAway) throw new Error("away");
      written.push("well");
      return registered(1);
    },
  });
  await attempt(503);
  clock.advance(minute);
  await attempt(503);
  await attempt(200);
  expect(lines.some(({ event }) => event === "webhook.unnoted")).toBe(true);
  isAway = false;
  await attempt(200);
  expect(written).toEqual(["failing", "well"]);
});

test("a success that could not be noted ends a row of 410s all the same", async () => {
  const { attempt, written, rows } = setUp({
    async noteSuccess() {
      throw new Error("away");
    },
  });
  for (const answer of [410, 410, 200, 410]) await attempt(answer);
  expect(written).toEqual(["failing", "failing"]);
  expect(rows()).toEqual([2, 1]);
});

describe("an outage of our own", () => {
  test("adds nothing to what is known, and is given back afterwards", async () => {
    const { attempt, clock, given, written } = setUp();
    const other = { host: "b.example", webhookKey: 2 };
    await attempt(503);
    clock.advance(day);
    await attempt(503);
    clock.advance(hour);
    await attempt("timeout", other);
    const before = written.length;
    for (let i = 0; i < 4; i++) {
      await attempt("timeout");
      clock.advance(day);
    }
    expect(written).toHaveLength(before);
    await attempt(200, other);
    await attempt(503);
    // A day ago was the last attempt: whether the network was down since is unknown.
    expect(given.at(-1)).toMatchObject({ excusedMs: 3 * day });
  });

  test("is given back once, however many servers it had cut off and however late each of them notes it", async () => {
    const one = setUp();
    const { clock, store } = one;
    const two = setUp({ noteFailures: store.noteFailures }, 5 * day, clock);
    const servers = [one, two];
    const other = { host: "b.example", webhookKey: 2 };
    const third = { host: "c.example", webhookKey: 3 };
    await two.attempt(503);
    clock.advance(hour);
    const begin = clock.now();
    await one.attempt(503);
    clock.advance(minute);
    await one.attempt(503);
    two.failingWebhooks.stands(ref, { as: "failing", at: one.since() ?? 0 });
    clock.advance(6 * hour);
    for (let i = 0; i < 6; i++) {
      for (const { hear } of servers) for (const host of [other, third]) hear("timeout", host);
      clock.advance(hour);
    }
    for (const { hear } of servers) hear(200, other);
    clock.advance(2 * day);
    for (const { attempt } of servers) {
      await attempt(503);
      expect(one.since()).toBe(begin + 5 * hour);
    }
  });

  test("is none that two dead hosts make while another one answers, however rarely that is tried", async () => {
    const { attempt, clock, lines, events } = setUp();
    const other = { host: "b.example", webhookKey: 2 };
    const healthy = { host: "c.example", webhookKey: 3 };
    for (let i = 0; i < 26; i++) {
      for (const pauseMs of [0, 5_000, 5 * minute, 30 * minute]) {
        clock.advance(pauseMs);
        await attempt("connection_refused");
        await attempt("dns_failed", other);
        if (pauseMs === 0) await attempt(204, healthy);
      }
      clock.advance(hour);
    }
    expect(lines.filter(({ event }) => event.startsWith("network."))).toEqual([]);
    expect(events.some(({ type }) => type === "postrider.webhook.failing")).toBe(true);
  });

  test("is said once, however often two hosts that died together are tried before another one answers", async () => {
    const { attempt, clock, lines, written } = setUp();
    const other = { host: "b.example", webhookKey: 2 };
    const healthy = { host: "c.example", webhookKey: 3 };
    for (let i = 0; i < 3; i++) {
      for (let tries = 0; tries < 3; tries++) {
        await attempt("connection_refused");
        await attempt("dns_failed", other);
        clock.advance(hour);
      }
      await attempt(204, healthy);
    }
    const said = lines.map(({ event }) => event).filter((event) => event.startsWith("network."));
    expect(said).toEqual(["network.silent", "network.answers"]);
    expect(written).toContain("failing");
  });

  test("is none while an inbox is all that answers, and none that one host makes", async () => {
    const { attempt, clock, written } = setUp();
    await attempt(200, { host: "inbox.example", webhookKey: 2 });
    await attempt("timeout", { host: "b.example", webhookKey: 3 });
    await attempt("timeout");
    await attempt(200, { host: "inbox.example", webhookKey: 2 });
    clock.advance(hour);
    await attempt("timeout");
    expect(written).toEqual([]);
    await attempt(204, { host: "b.example", webhookKey: 3 });
    await attempt("timeout");
    clock.advance(hour);
    await attempt("timeout");
    expect(written).toEqual(["failing"]);
  });
});
