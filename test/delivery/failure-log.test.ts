import { describe, expect, test } from "bun:test";
import { createFailureLog } from "../../src/delivery/failure-log.ts";
import type { DueDelivery } from "../../src/domain/delivery.ts";
import type { FailureCode } from "../../src/domain/failure.ts";
import { newStanding, usualSettings, type Webhook } from "../../src/domain/webhook.ts";
import { createLog } from "../../src/lib/log.ts";
import type { Settlement } from "../../src/store/deliveries.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const secretUrl = (n: number) => `https://hooks${n}.example.com:8443/t0ken-in-the-path?key=qu3ry`;

function setUp() {
  const clock = createFakeClock();
  const lines: Record<string, unknown>[] = [];
  const log = createLog({
    level: "info",
    format: "json",
    now: clock.now,
    out: (line) => void lines.push(JSON.parse(line)),
  });
  const removed = new Set<number>();
  const webhooks = async (tenantKey: number): Promise<Webhook[]> =>
    [
      { key: tenantKey, id: `wh_${tenantKey}`, url: secretUrl(tenantKey), name: "", ...usualSettings, ...newStanding },
    ].filter(({ key }) => !removed.has(key));
  const failureLog = createFailureLog({ clock, log, store: { webhooks } });
  const settle = (webhook: number, statusCode: number | null, errorCode: FailureCode | null, error: string | null) => {
    const delivery = { webhookKey: webhook, tenantKey: webhook, tenantId: `t${webhook}`, url: secretUrl(webhook) };
    failureLog.attempted({
      delivery: { ...delivery, eventId: "evt_1" } as DueDelivery,
      attempt: { startedAt: 0, durationMs: 1, statusCode, errorCode, error, responseBody: null },
      next: error === null ? { kind: "delivered" } : { kind: "retry", at: 0 },
    } as Settlement);
  };
  return {
    clock,
    lines,
    fail: (webhook: number, times = 1) => {
      for (let i = 0; i < times; i++) settle(webhook, 503, "http_status", `HTTP 503 from ${secretUrl(webhook)}`);
    },
    failWith: (webhook: number, code: FailureCode, error: string) => settle(webhook, null, code, error),
    remove: (webhook: number) => void removed.add(webhook),
    succeed: (webhook: number) => settle(webhook, 200, null, null),
    /** Lines wait for a look-up of the webhook's id. */
    async minute() {
      clock.advance(60_000);
      await Bun.sleep(0);
    },
    told: async () => {
      await Bun.sleep(0);
      return lines.map(({ event, webhookId, failures }) => [event, webhookId, failures]);
    },
  };
}

describe("failing webhooks in the log", () => {
  test("the first failure is told at once, with the id, the host and the reason", async () => {
    const { fail, lines, told } = setUp();
    fail(1);
    expect(await told()).toEqual([["webhook.failing", "wh_1", 1]]);
    expect(lines[0]).toMatchObject({
      level: "warn",
      host: "hooks1.example.com:8443",
      tenantId: "t1",
      eventId: "evt_1",
      code: "http_status",
      reason: "HTTP 503 from hooks1.example.com:8443",
    });
  });

  test("a webhook that is removed meanwhile keeps its id, and has no line if it never had one", async () => {
    const { fail, remove, minute, told } = setUp();
    fail(1);
    await told();
    remove(1);
    fail(1, 2);
    remove(2);
    fail(2);
    await minute();
    expect(await told()).toEqual([
      ["webhook.failing", "wh_1", 1],
      ["webhook.failing", "wh_1", 2],
    ]);
  });

  test("100,000 failures are a line, and one a minute with their number and the latest reason", async () => {
    const { fail, failWith, minute, lines, told } = setUp();
    fail(1, 100_000);
    failWith(1, "timeout", `No response within 10 s from ${secretUrl(1)}`);
    await minute();
    expect(await told()).toEqual([
      ["webhook.failing", "wh_1", 1],
      ["webhook.failing", "wh_1", 100_000],
    ]);
    expect(lines[1]).toMatchObject({ code: "timeout", reason: "No response within 10 s from hooks1.example.com:8443" });
  });

  test("no line has the path, the query or a user of a URL", async () => {
    const { fail, failWith, minute, lines } = setUp();
    fail(1, 10);
    failWith(2, "tls_failed", `TLS connection to ${secretUrl(2)} failed (certificate has expired)`);
    await minute();
    expect(lines.length).toBeGreaterThan(2);
    expect(JSON.stringify(lines)).not.toMatch(/t0ken|qu3ry/);
  });

  test("recovery is told once, when a minute has passed without a failure", async () => {
    const { fail, succeed, minute, told, clock } = setUp();
    fail(1, 3);
    succeed(1);
    await minute();
    succeed(1);
    await minute();
    await minute();
    expect(await told()).toEqual([
      ["webhook.failing", "wh_1", 1],
      ["webhook.failing", "wh_1", 2],
      ["webhook.recovered", "wh_1", 3],
    ]);
    expect(clock.timers).toBe(0);
  });

  test("a webhook that fails every other time is one line a minute", async () => {
    const { fail, succeed, minute, told } = setUp();
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 100; i++) {
        fail(1);
        succeed(1);
      }
      await minute();
    }
    expect(await told()).toEqual([
      ["webhook.failing", "wh_1", 1],
      ["webhook.failing", "wh_1", 99],
      ["webhook.failing", "wh_1", 100],
      ["webhook.failing", "wh_1", 100],
    ]);
  });

  test("a thousand webhooks are fifty lines, fifty a minute, and a count of the others", async () => {
    const { fail, minute, lines, told } = setUp();
    for (let webhook = 1; webhook <= 1000; webhook++) fail(webhook, 10);
    expect(await told()).toHaveLength(50);
    await minute();
    expect(lines).toHaveLength(101);
    const all = lines.reduce((sum, { failures }) => sum + Number(failures), 0);
    expect(all).toBe(10_000);
    expect(lines.find(({ event }) => event === "webhook.more_failing")).toMatchObject({ webhooks: 950 });
  });

  test("one that nothing goes to any more is forgotten after an hour", async () => {
    const { fail, minute, told, clock } = setUp();
    fail(1);
    for (let i = 0; i < 62; i++) await minute();
    expect([await told(), clock.timers]).toEqual([[["webhook.failing", "wh_1", 1]], 0]);
  });
});
