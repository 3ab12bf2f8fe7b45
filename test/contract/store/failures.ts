import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { DueDelivery } from "../../../src/domain/delivery.ts";
import { lineOf } from "../../../src/domain/failure-groups.ts";
import type { Tenant } from "../../../src/domain/tenant.ts";
import { ingestedAtOf } from "../../../src/lib/id.ts";
import type { FailureGroup, FailureQuery } from "../../../src/store/failures.ts";
import { typeHashOf } from "../../../src/store/type-hash.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import {
  bytes,
  createWorld,
  type GivenFailure,
  type Outcome,
  refusalOf,
  type World,
} from "../../support/store-factory.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";
const c = "https://c.example/hook";
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** Numbers that look random and are the same each time. */
function createRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

type Counts = Record<string, readonly [waiting: number, failed: number]>;

function addTo(counts: Counts, name: string, [waiting, failed]: Counts[string]): void {
  const [before, failedBefore] = counts[name] ?? [0, 0];
  counts[name] = [before + waiting, failedBefore + failed];
}

/** Of each status one line. */
const failures: readonly GivenFailure[] = [
  { status: 503, answer: "busy, try in 12 s" },
  { status: 503, answer: "busy, try in 7 s\nsecond line" },
  { status: 502, answer: "database is gone" },
  { status: 404 },
  { code: "timeout" },
];

/** `EventVerbs.failures` of `src/store/store.ts`, as tests. */
export function failuresContract(backend: StoreBackend): void {
  describe(`${backend.name} is a store:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    const report = (tenant: Tenant, given: Partial<FailureQuery> = {}) =>
      world.store.failures({ tenantKey: tenant.key, from: 0, to: world.clock.now() + dayMs, ...given });

    const nameOf = ({ webhook, code, status, line }: Pick<FailureGroup, "webhook" | "code" | "status" | "line">) =>
      [webhook?.url ?? "", code, status ?? "", line].join(" ").trim();

    /** "url code status line": waiting, failed. */
    async function counts(tenant: Tenant, given: Partial<FailureQuery> = {}) {
      const { groups, total } = await report(tenant, given);
      expect(total).toBe(groups.length);
      // A URL that was registered again is another webhook.
      const counted: Counts = {};
      for (const group of groups) addTo(counted, nameOf(group), [group.waiting, group.failed]);
      return counted;
    }

    /** The same, counted from the records; the line is that of the last attempt in the log that was answered so. */
    async function recount(tenant: Tenant, { from = 0, to = Number.MAX_SAFE_INTEGER } = {}) {
      const counted: Counts = {};
      const { records } = await world.page(tenant);
      for (const record of records) {
        const { eventId, targetWebhook: url, errorCode: code, statusCode: status, ingestedAt } = record;
        if (code === null || ingestedAt < from || ingestedAt > to) continue;
        const log = (await world.attemptsOf(tenant.key, eventId)) ?? [];
        const last = log.findLast((each) => each.targetWebhook === url && each.statusCode === status);
        const line = status === null ? "" : lineOf(bytes(last?.responseBody ?? ""));
        const name = nameOf({ webhook: { id: "", url }, code, status, line });
        addTo(counted, name, record.state === "PENDING" ? [1, 0] : [0, 1]);
      }
      return counted;
    }

    test("what succeeds at once is in no group, and leaves nothing behind", async () => {
      const tenant = await world.tenant({ urls: [a] });
      const before = await world.count();
      await world.event(tenant, "delivered");
      const { failure_count, failure_group } = await world.count();
      expect({ failure_count, failure_group }).toMatchObject({
        failure_count: before.failure_count ?? 0,
        failure_group: before.failure_group ?? 0,
      });
      expect(await report(tenant)).toMatchObject({ groups: [], total: 0, others: { waiting: 0, failed: 0 } });
    });

    test("a failure waits or has failed in the group of its webhook, code, status and answer", async () => {
      const tenant = await world.tenant({ urls: [a, b] });
      const settle = async (...given: [Outcome, GivenFailure][]) => {
        const { deliveries } = await world.acceptOwned(tenant);
        for (const [i, [outcome, failure]] of given.entries()) {
          const delivery = deliveries[i];
          if (delivery) await world.settle(delivery, outcome, failure);
        }
      };
      await settle(["retry", { answer: "order 17 is locked" }], ["failed", { status: 404 }]);
      await settle(["failed", { answer: "order 2,004 is locked" }], ["failed", { code: "dns_failed" }]);
      await world.event(await world.tenant({ urls: [c] }), "failed");
      expect(await counts(tenant)).toEqual({
        [`${a} http_status 503 order # is locked`]: [1, 1],
        [`${b} http_status 404 answer`]: [0, 1],
        [`${b} dns_failed`]: [0, 1],
      });
      expect(await counts(tenant, { webhookId: b })).toEqual({
        [`${b} http_status 404 answer`]: [0, 1],
        [`${b} dns_failed`]: [0, 1],
      });
      expect(await counts(tenant, { webhookId: c })).toEqual({});
    });

    test("a failure that a cancelled replay returns is as old as it was, also in a group made anew", async () => {
      const tenant = await world.tenant();
      const id = await world.event(tenant);
      const failedAt = world.clock.now();
      await world.setUrls(tenant, a);
      const cancelled = async (attempt?: [Outcome, GivenFailure]) => {
        world.clock.advance(1_000);
        const { replay } = await world.replayEvent(tenant, id);
        const [delivery] = attempt ? await world.claim(tenant) : [];
        if (attempt && delivery) await world.settle(delivery, ...attempt);
        world.clock.advance(1_000);
        await world.store.cancelReplay(tenant.key, replay.id, world.clock.now());
        while (await world.store.returnCancelled(10, world.clock.now()));
      };
      await cancelled();
      expect((await report(tenant)).groups).toMatchObject([
        { code: "no_webhook", waiting: 0, failed: 1, lastFailedAt: failedAt },
      ]);
      await cancelled(["retry", { code: "timeout" }]);
      expect((await report(tenant)).groups).toMatchObject([
        { code: "no_webhook", waiting: 0, failed: 1, lastFailedAt: failedAt },
      ]);
    });

    test("a retry that a cancelled replay returns has failed with its latest attempt", async () => {
      const tenant = await world.tenant({ urls: [a] });
      const id = await world.event(tenant, "retry");
      world.clock.advance(1_000);
      const { replay } = await world.replayEvent(tenant, id);
      const [delivery] = await world.claim(tenant);
      if (delivery) await world.settle(delivery, "retry", { code: "timeout" });
      const lastFailedAt = world.clock.now();
      world.clock.advance(1_000);
      await world.store.cancelReplay(tenant.key, replay.id, world.clock.now());
      while (await world.store.returnCancelled(10, world.clock.now()));
      expect((await report(tenant)).groups).toMatchObject([
        { code: "http_status", waiting: 1, failed: 0, lastFailedAt },
      ]);
    });

    test("a group says what it has of events, and since when", async () => {
      const tenant = await world.tenant({ urls: [a] });
      const types = ["order.paid", "order.refund", null, "order.paid"];
      const eventIds: string[] = [];
      const times: number[] = [];
      for (const type of types) {
        const accepted = await world.acceptOwned(tenant, { events: [{ payload: bytes("{}"), type }] });
        eventIds.push(...accepted.eventIds);
        times.push(...accepted.eventIds.map(ingestedAtOf));
        world.clock.advance(1_000);
        for (const delivery of accepted.deliveries) await world.settle(delivery, "failed");
      }
      const [webhook] = await world.store.webhooks(tenant.key);
      expect((await report(tenant)).groups).toEqual([
        {
          webhook: { id: webhook?.id ?? "", url: a },
          ...({ code: "http_status", status: 503, line: "answer" } as const),
          ...{ waiting: 0, failed: 4, lastFailedAt: world.clock.now() },
          ...{ firstEventAt: times[0] ?? 0, lastEventAt: times[3] ?? 0 },
          eventIds: eventIds.toReversed().slice(0, 3),
          types: [
            { type: "order.paid", records: 2 },
            { type: null, records: 1 },
            { type: "order.refund", records: 1 },
          ],
          typeHashes: [typeHashOf("order.paid"), null, typeHashOf("order.refund")],
        },
      ]);
    });

    test("an attempt, a success, a replay and a removal move a record from group to group", async () => {
      const tenant = await world.tenant({ urls: [a] });
      const delivery = await world.delivery(tenant);
      const again = async (outcome: Outcome, failure?: GivenFailure) => {
        world.clock.advance(60_000);
        for (const due of await world.claim(tenant)) await world.settle(due, outcome, failure);
      };
      await world.settle(delivery, "retry", { code: "timeout" });
      expect(await counts(tenant)).toEqual({ [`${a} timeout`]: [1, 0] });
      await again("retry", { code: "timeout" });
      expect(await counts(tenant)).toEqual({ [`${a} timeout`]: [1, 0] });
      await again("failed", { status: 500 });
      expect(await counts(tenant)).toEqual({ [`${a} http_status 500 answer`]: [0, 1] });
      await world.replayEvent(tenant, delivery.eventId);
      expect(await counts(tenant)).toEqual({ [`${a} http_status 500 answer`]: [1, 0] });
      await again("delivered");
      expect(await counts(tenant)).toEqual({});
      await world.accept(tenant);
      await world.setUrls(tenant);
      while (await world.store.failUndeliverable(100));
      expect(await counts(tenant)).toEqual({ [`${a} webhook_removed`]: [0, 1] });
    });

    test("a group goes on when its last record of one hour leaves it as its first of another comes", async () => {
      const tenant = await world.tenant({ urls: [a] });
      await world.event(tenant, "retry");
      world.clock.advance(2 * hourMs);
      const [earlier] = await world.claim(tenant);
      if (!earlier) throw new Error("The retry is not due");
      const later = await world.delivery(tenant);
      await Promise.all([world.settle(earlier, "delivered"), world.settle(later, "failed")]);
      expect(await counts(tenant)).toEqual({ [`${a} http_status 503 answer`]: [0, 1] });
    });

    test("what found no webhook is a group, until a replay finds one", async () => {
      const tenant = await world.tenant();
      const eventIds = await world.acceptMany(tenant, 3);
      const [found] = (await report(tenant)).groups;
      expect(found).toMatchObject({ webhook: null, code: "no_webhook", status: null, line: "", failed: 3 });
      await world.setUrls(tenant, a);
      await world.replayEvent(tenant, eventIds[0] ?? "");
      expect(await counts(tenant)).toEqual({ no_webhook: [0, 2] });
    });

    test("whole hours are counted, and said", async () => {
      const tenant = await world.tenant({ urls: [a] });
      const start = Math.ceil((world.clock.now() + 1) / hourMs) * hourMs;
      for (const hour of [0, 1, 1, 2]) {
        world.clock.advance(start + hour * hourMs + 60_000 - world.clock.now());
        await world.event(tenant, "failed");
      }
      const within = (from: number, to: number) => report(tenant, { from: start + from, to: start + to });
      const { from, to, groups } = await within(hourMs + 5, hourMs + 5);
      expect([from - start, to - start, groups[0]?.failed]).toEqual([hourMs, 2 * hourMs - 1, 2]);
      expect(groups[0]?.eventIds).toHaveLength(2);
      expect((await within(0, hourMs - 1)).groups[0]?.failed).toBe(1);
      expect((await within(0, 2 * hourMs)).groups[0]?.failed).toBe(4);
      expect((await within(3 * hourMs, 4 * hourMs)).groups).toEqual([]);
    });

    test("an account has a thousand groups; what fails in more ways is among the others, and counted all the same", async () => {
      const tenant = await world.tenant({ urls: [a] });
      const { deliveries } = await world.acceptOwned(tenant, {
        payloads: Array.from({ length: 1_010 }, () => bytes("{}")),
      });
      const word = (n: number) => n.toString(26).replace(/\d/g, (digit) => "qrstuvwxyz".charAt(Number(digit)));
      await Promise.all(
        deliveries.map((delivery, n) => world.settle(delivery, "retry", { answer: `the ${word(n)} way` })),
      );
      const { groups, unlisted, total, others } = await report(tenant);
      expect([groups.length, unlisted.length, total, others]).toEqual([100, 900, 1_000, { waiting: 10, failed: 0 }]);
      for (const group of unlisted) {
        expect(group).toMatchObject({ webhook: { url: a }, code: "http_status", status: 503, waiting: 1, failed: 0 });
        expect([group.firstEventAt, group.typeHashes]).toEqual([group.lastEventAt, [null]]);
      }
      expect((await report(tenant, { webhookId: b })).others).toEqual({ waiting: 0, failed: 0 });
      world.clock.advance(60_000);
      await Promise.all((await world.claim(tenant)).map((due) => world.settle(due, "delivered")));
      const none = { groups: [], unlisted: [], total: 0, others: { waiting: 0, failed: 0 } };
      expect(await report(tenant)).toMatchObject(none);
    });

    test.each([1, 2, 3, 4])("whatever happens, the groups count what the records say (history %i)", async (seed) => {
      const random = createRandom(seed);
      const pick = <T>(list: readonly T[]): T => list[random(list.length)] as T;
      const tenant = await world.tenant({ urls: [a, b] });
      const owned: DueDelivery[] = [];
      const eventIds: string[] = [];
      const settleOne = async () => {
        const [delivery] = owned.splice(random(owned.length), 1);
        if (delivery) await world.settle(delivery, pick(["delivered", "failed", "retry", "retry"]), pick(failures));
      };
      const acts: (() => Promise<unknown>)[] = [
        async () => {
          const payloads = Array.from({ length: 1 + random(3) }, () => bytes("{}"));
          const accepted = await world.acceptOwned(tenant, { payloads });
          eventIds.push(...accepted.eventIds);
          owned.push(...accepted.deliveries);
        },
        settleOne,
        settleOne,
        settleOne,
        async () => owned.push(...(await world.claim(tenant))),
        async () => world.clock.advance(pick([1_000, 60_000, 25 * 60_000])),
        async () => eventIds.length > 0 && world.replayEvent(tenant, pick(eventIds)),
        async () => {
          // Refused when so many have not ended.
          await refusalOf(world.startReplay(tenant, pick(["failed", "all"])));
          await world.queueAll(3);
        },
        async () => {
          const [replay] = (await world.replaysOf(tenant.key, { offset: random(3), limit: 1 })).replays;
          if (replay) await world.store.cancelReplay(tenant.key, replay.id, world.clock.now());
          if (random(2) === 0) await world.store.returnCancelled(2, world.clock.now());
        },
        async () => {
          await world.setUrls(tenant, ...pick([[a, b], [b, a], [b, c], [a], [], [a, b]]));
          if (random(2) === 0) while (await world.store.failUndeliverable(2));
        },
      ];
      for (let step = 0; step < 120; step++) {
        await pick(acts)();
        if (step % 20 === 0) await world.store.prune(world.clock.now(), 1_000);
        if (step % 15 === 0) expect(await counts(tenant)).toEqual(await recount(tenant));
      }
      expect(await counts(tenant)).toEqual(await recount(tenant));
      const to = world.clock.now() - (world.clock.now() % hourMs) - 1;
      expect(await counts(tenant, { to })).toEqual(await recount(tenant, { to }));
      await world.reopen();
      expect(await counts(tenant)).toEqual(await recount(tenant));
    });
  });
}
