import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { DueDelivery } from "../../../src/domain/delivery.ts";
import type { FailureCode } from "../../../src/domain/failure.ts";
import { sliceRecords } from "../../../src/store/search.ts";
import { readAll } from "../../support/read-all.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { answerHead, bytes, createWorld, refusalOf, type World } from "../../support/store-factory.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";
const c = "https://c.example/hook";

/** How `EventVerbs` of `src/store/store.ts` reads, as tests. */
export function eventsContract(backend: StoreBackend): void {
  describe(`${backend.name} is a store:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    describe("page", () => {
      test("shows the newest event first, and the records of one event in the order of the webhooks", async () => {
        const tenant = await world.tenant({ urls: [b, a] });
        await world.accept(await world.tenant({ urls: [c] }));
        const ids = await world.acceptMany(tenant, 3);
        const { records, ...counts } = await world.page(tenant);
        expect(counts).toEqual({ total: 6, totalIsExact: true, totalEvents: 3 });
        expect(records.map(({ eventId, targetWebhook }) => [eventId, targetWebhook])).toEqual(
          ids.toReversed().flatMap((id) => [
            [id, b],
            [id, a],
          ]),
        );
      });

      test("counts all events of the account beside all of its records, and not beside a part of them", async () => {
        const tenant = await world.tenant({ urls: [b, a] });
        expect((await world.page(tenant)).totalEvents).toBe(0);
        await world.acceptMany(tenant, 3);
        expect((await world.page(tenant, { page: 9 })).totalEvents).toBe(3);
        expect((await world.page(tenant, { state: "PENDING" })).totalEvents).toBeUndefined();
        expect((await world.page(tenant, { from: 0 })).totalEvents).toBeUndefined();
      });

      test("shows the type of each event, and finds by it, also together with other filters", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const typed = async (...types: (string | null)[]) =>
          (await world.accept(tenant, { events: types.map((type) => ({ payload: bytes("{}"), type })) })).eventIds;
        const [paid = "", refund = "", none = ""] = await typed("order.paid", "order.refund", null);
        const [again = ""] = await typed("order.paid");
        const typesOf = async (id: string) => (await world.recordsOf(tenant.key, id))?.map(({ type }) => type);
        expect(await Promise.all([paid, refund, none].map(typesOf))).toEqual([
          ["order.paid", "order.paid"],
          ["order.refund", "order.refund"],
          [null, null],
        ]);
        const found = async (given: Parameters<World["page"]>[1]) => {
          const { records, total } = await world.page(tenant, { type: "order.paid", ...given });
          expect(total).toBe(records.length);
          return records.map(({ eventId, targetWebhook, state }) => `${eventId} ${targetWebhook} ${state}`);
        };
        expect(await found({})).toEqual([again, paid].flatMap((id) => [`${id} ${a} PENDING`, `${id} ${b} PENDING`]));
        const [first] = await world.claim(tenant);
        if (first) await world.settle(first, "delivered");
        expect(await found({ state: "DELIVERED" })).toEqual([`${paid} ${a} DELIVERED`]);
        expect(await found({ state: "PENDING", webhookId: a })).toEqual([`${again} ${a} PENDING`]);
        expect(await found({ to: world.clock.now() - 1 })).toEqual([]);
        expect(await found({ type: "order" })).toEqual([]);
      });

      test("finds by the code and the status of a failure, with all other filters, what waits and what has ended", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const events = ["order.paid", "order.refund"].map((type) => ({ payload: bytes("{}"), type }));
        const { eventIds, deliveries } = await world.acceptOwned(tenant, { events });
        const [paidAtA, paidAtB, refundAtA, refundAtB] = deliveries as [
          DueDelivery,
          DueDelivery,
          DueDelivery,
          DueDelivery,
        ];
        await world.settle(paidAtA, "retry", { status: 503 });
        await world.settle(paidAtB, "failed", { status: 404 });
        await world.settle(refundAtA, "failed", { code: "timeout" });
        await world.settle(refundAtB, "failed", { status: 503 });
        await world.event(await world.tenant({ urls: [c] }), "failed");
        await world.event(tenant, "delivered", "delivered");
        const [paid, refund] = eventIds;
        const found = async (given: Parameters<World["page"]>[1]) => {
          const { records, ...counts } = await world.page(tenant, given);
          expect(counts).toEqual({ total: records.length, totalIsExact: true });
          return records.map(({ eventId, targetWebhook, state }) => `${eventId} ${targetWebhook} ${state}`);
        };
        const [waits, ends] = [`${paid} ${a} PENDING`, `${refund} ${b} FAILED`];
        expect(await found({ code: "http_status" })).toEqual([ends, waits, `${paid} ${b} FAILED`]);
        expect(await found({ status: 503 })).toEqual([ends, waits]);
        expect(await found({ status: 503, state: "PENDING" })).toEqual([waits]);
        expect(await found({ status: 503, state: "FAILED" })).toEqual([ends]);
        expect(await found({ code: "http_status", status: 503, type: "order.paid" })).toEqual([waits]);
        expect(await found({ status: 503, webhookId: b })).toEqual([ends]);
        expect(await found({ status: 503, webhookId: a, type: "order.refund" })).toEqual([]);
        expect(await found({ code: "timeout" })).toEqual([`${refund} ${a} FAILED`]);
        expect(await found({ code: "timeout", to: world.clock.now() - 60_000 })).toEqual([]);
        expect(await found({ code: "timeout", status: 503 })).toEqual([]);
        for (const state of ["DELIVERED", "SKIPPED"] as const) {
          expect(await found({ code: "http_status", state })).toEqual([]);
          expect(await found({ status: 503, state })).toEqual([]);
        }
        expect(await found({ status: 204 })).toEqual([]);

        // A replay keeps what is known until it is known better.
        await world.replayEvent(tenant, paid ?? "");
        expect(await found({ status: 404 })).toEqual([`${paid} ${b} PENDING`]);
        for (const delivery of await world.claim(tenant)) await world.settle(delivery, "delivered");
        expect(await found({ status: 404 })).toEqual([]);
        expect(await found({ code: "http_status" })).toEqual([ends]);
      });

      test("finds a text in the payload, or a part of the id, with all other filters, and says that it looked at all", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const payloads = ['{"name":"Ann","n":1}', '{"name":"Bob \\"B\\"","n":2}', '{"name":"Ann","n":3}'].map(bytes);
        const { eventIds, deliveries } = await world.acceptOwned(tenant, { payloads });
        const [first = "", second = "", third = ""] = eventIds;
        if (deliveries[0]) await world.settle(deliveries[0], "failed", { code: "timeout" });
        await world.accept(await world.tenant({ urls: [c] }), { payloads });
        const found = async (text: string, given: Parameters<World["page"]>[1] = {}) => {
          const { records, ...counts } = await world.page(tenant, { text, ...given });
          expect(counts).toEqual({ total: records.length, totalIsExact: true, searchedTo: null });
          return records.map(({ eventId, targetWebhook }) => `${eventId} ${targetWebhook}`);
        };
        const both = (...ids: string[]) => ids.flatMap((id) => [`${id} ${a}`, `${id} ${b}`]);
        expect(await found("Ann")).toEqual(both(third, first));
        expect(await found('"n":2')).toEqual(both(second));
        expect(await found('Bob "B"')).toEqual(both(second));
        expect(await found("ann")).toEqual([]);
        expect(await found("Ann", { webhookId: b })).toEqual([`${third} ${b}`, `${first} ${b}`]);
        expect(await found("Ann", { code: "timeout", state: "FAILED" })).toEqual([`${first} ${a}`]);
        expect(await found("Ann", { code: "timeout", status: 503 })).toEqual([]);
        expect(await found("Ann", { code: "timeout", state: "SKIPPED" })).toEqual([]);
        expect(await found(first)).toEqual(both(first));
        expect(await found(first.slice(-12).toUpperCase())).toEqual(both(first));
        expect(await found("evt_")).toHaveLength(6);
        const naming = (await world.accept(tenant, { payloads: [bytes(`{"of":"${first}"}`)] })).eventIds[0] ?? "";
        expect(await found(first)).toEqual([...both(first), ...both(naming)]);
      });

      test("a search goes through slices, and ends when its page is full", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const payloads = Array.from({ length: 900 }, (_, n) => bytes(`{"n":${n},"third":${n % 3 === 0}}`));
        const { eventIds } = await world.accept(tenant, { payloads });
        const wanted = eventIds.filter((_, n) => n % 3 === 0).toReversed();
        const all = await world.page(tenant, { text: '"third":true' });
        expect(all).toMatchObject({ total: 600, totalIsExact: true, searchedTo: null });
        expect(all.records.map(({ eventId }) => eventId)).toEqual(wanted.flatMap((id) => [id, id]));
        const some = await world.page(tenant, { text: '"third":true', page: 1, size: 10 });
        expect(some.records).toEqual(all.records.slice(10, 20));
        expect(some).toMatchObject({ totalIsExact: false, searchedTo: expect.any(Number) });
        expect(some.total).toBeGreaterThan(20);
        expect((await world.page(tenant, { text: '"n":899,', size: 1 })).records).toHaveLength(1);
      });

      test("a search that is continued gets further each time, however much one millisecond holds", async () => {
        const urls = Array.from({ length: 12 }, (_, n) => `https://h${n}.example/hook`);
        const tenant = await world.tenant({ urls });
        await world.accept(tenant);
        world.clock.advance(1_000);
        await world.acceptMany(tenant, 200);
        const first = (await world.page(tenant, { text: "{}", size: 1 })).searchedTo ?? null;
        expect(first).toBeGreaterThanOrEqual(world.clock.now());
        for (let to = first; to !== null; ) {
          const { searchedTo = null } = await world.page(tenant, { text: "{}", size: 1, to });
          expect(searchedTo ?? 0).toBeLessThan(to);
          to = searchedTo;
        }
      });

      test("a search finds an event with more records than a slice, and goes on behind it", async () => {
        const urls = Array.from({ length: sliceRecords + 10 }, (_, n) => `https://h${n}.example/hook`);
        const tenant = await world.tenant({ urls });
        const [id = ""] = (await world.accept(tenant, { payloads: ["[1]", "[2]"].map(bytes) })).eventIds;
        const all = { totalIsExact: true, searchedTo: null };
        expect(await world.page(tenant, { text: "[1]", size: 1 })).toMatchObject({ total: urls.length, ...all });
        expect(await world.page(tenant, { text: id, size: 1 })).toMatchObject({ total: urls.length });
      });

      test("a slice of a search ends with the event that makes it 8 MiB of payloads", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const payloads = Array.from({ length: 20 }, (_, n) => bytes(`{"n":${n},"x":"${"x".repeat(2 ** 19)}"}`));
        const { eventIds } = await world.accept(tenant, { payloads });
        const first = await world.page(tenant, { text: '{"n":', size: 1, payload: "none" });
        expect(first).toMatchObject({ total: 32, totalIsExact: false, searchedTo: expect.any(Number) });
        const all = await world.page(tenant, { text: '{"n":', payload: "none" });
        expect(all).toMatchObject({ total: 40, totalIsExact: true, searchedTo: null });
        expect(all.records.map(({ eventId }) => eventId)).toEqual(eventIds.toReversed().flatMap((id) => [id, id]));
      });

      test("only as many searches wait as can be answered before their clients' connections are cut", async () => {
        const tenant = await world.tenant();
        await world.accept(tenant);
        const outcomes = await Promise.all(
          Array.from({ length: 60 }, () => refusalOf(world.page(tenant, { text: "x" }))),
        );
        const refused = outcomes.filter((outcome) => outcome !== "fulfilled");
        expect(new Set(refused)).toEqual(new Set(["unavailable storage_unavailable"]));
        // Each takes half a second at most, and a connection is cut after 30 s.
        expect(outcomes.length - refused.length).toBeLessThan(40);
      });

      test("passes over a search that nobody waits for any more when its turn comes", async () => {
        const tenant = await world.tenant();
        let asked = 0;
        const abandoned = { text: "x", isAbandoned: () => ++asked > 0 };
        const searches = [{ text: "x" }, { text: "x" }, abandoned, { text: "x" }];
        const outcomes = await Promise.all(searches.map((search) => refusalOf(world.page(tenant, search))));
        expect(outcomes).toEqual(["fulfilled", "fulfilled", "invalid request_abandoned", "fulfilled"]);
        expect(asked).toBe(1);
      });

      test("leaves out what has another code by the time at which it is read", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const delivery = await world.delivery(tenant);
        await world.settle(delivery, "retry");
        const { records } = await world.store.page({ tenantKey: tenant.key, page: 0, size: 9, code: "http_status" });
        world.clock.advance(60_000);
        for (const due of await world.claim(tenant)) await world.settle(due, "failed", { code: "timeout" });
        expect(await readAll(records)).toEqual([]);
      });

      test("finds by its code what found no webhook, and what waited for one that was removed", async () => {
        const tenant = await world.tenant();
        await world.accept(tenant);
        await world.setUrls(tenant, a);
        await world.accept(tenant);
        await world.setUrls(tenant);
        while (await world.store.failUndeliverable(100));
        const found = async (code: FailureCode) =>
          (await world.page(tenant, { code })).records.map(({ targetWebhook, state }) => [targetWebhook, state]);
        expect(await found("no_webhook")).toEqual([["", "FAILED"]]);
        expect(await found("webhook_removed")).toEqual([[a, "FAILED"]]);
      });

      test("finds by its type what a replay adds for a webhook, and what goes back to the queue", async () => {
        const tenant = await world.tenant();
        const events = [{ payload: bytes("{}"), type: "order.paid" }];
        const { eventIds } = await world.accept(tenant, { events });
        await world.setUrls(tenant, a);
        await world.replayEvent(tenant, eventIds[0] ?? "");
        const found = async () => {
          const { records } = await world.page(tenant, { type: "order.paid" });
          return records.map(({ targetWebhook, state }) => `${targetWebhook} ${state}`);
        };
        expect(await found()).toEqual([`${a} PENDING`]);
        const [delivery] = await world.claim(tenant);
        if (delivery) await world.settle(delivery, "failed");
        expect(await found()).toEqual([`${a} FAILED`]);
        await world.replayEvent(tenant, eventIds[0] ?? "");
        expect(await found()).toEqual([`${a} PENDING`]);
      });

      test("cuts anywhere, and is empty behind the end", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        await world.acceptMany(tenant, 5);
        const all = (await world.page(tenant)).records;
        const cut = await Promise.all([0, 1, 2, 3, 4].map((page) => world.page(tenant, { page, size: 3 })));
        expect(cut.flatMap(({ records }) => records)).toEqual(all);
        expect(cut.map(({ total }) => total)).toEqual([10, 10, 10, 10, 10]);
        expect((await world.page(tenant, { page: 1e9, size: 1000 })).records).toEqual([]);
      });

      test("by state is the list without the others", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        for (const outcome of ["delivered", "failed", "retry"] as const) await world.event(tenant, outcome, "failed");
        const all = (await world.page(tenant)).records;
        for (const state of ["PENDING", "DELIVERED", "FAILED"] as const) {
          expect((await world.page(tenant, { state })).records).toEqual(all.filter((record) => record.state === state));
        }
        const cut = await Promise.all(
          [0, 1, 2, 3].map((page) => world.page(tenant, { page, size: 1, state: "FAILED" })),
        );
        expect(cut.flatMap(({ records }) => records)).toEqual(all.filter(({ state }) => state === "FAILED"));
        expect(await world.totals(tenant)).toEqual({ PENDING: 1, DELIVERED: 1, FAILED: 4 });
      });

      test("filters by webhook, also a removed one, and by times, both inclusive", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const [removed] = await world.store.webhooks(tenant.key);
        const start = world.clock.now();
        for (let i = 0; i < 4; i++) {
          if (i === 2) await world.setUrls(tenant, b);
          await world.accept(tenant);
          world.clock.advance(1_000);
        }
        const total = async (given: Parameters<World["page"]>[1]) => {
          const page = await world.page(tenant, given);
          expect(page.records).toHaveLength(page.total);
          return page.total;
        };
        expect(await total({ webhookId: removed?.id ?? "" })).toBe(2);
        expect(await total({ webhookId: "wh_none" })).toBe(0);
        expect(await total({ from: start + 1_000 })).toBe(4);
        expect(await total({ from: start + 1_000, to: start + 2_000 })).toBe(3);
        expect(await total({ to: start + 2_999 })).toBe(5);
        expect(await total({ from: start, to: start, webhookId: removed?.id ?? "", state: "PENDING" })).toBe(1);
        expect(await total({ from: start, to: start, state: "FAILED" })).toBe(0);
        const stranger = await world.tenant();
        expect((await world.page(stranger, { webhookId: removed?.id ?? "" })).total).toBe(0);
      });

      test("without payloads is the same list, on the first pages, deep ones and with a filter", async () => {
        const tenant = await world.tenant();
        await world.acceptMany(tenant, 2_100);
        const from = world.clock.now();
        for (const given of [
          { size: 5 },
          { size: 5, state: "FAILED" as const },
          { page: 419, size: 5 },
          { from, size: 5 },
        ]) {
          const whole = await world.page(tenant, given);
          expect(whole.records.map(({ payload }) => payload?.length)).toEqual([2, 2, 2, 2, 2]);
          const lean = await world.page(tenant, { ...given, payload: "none" });
          expect(lean).toEqual({ ...whole, records: whole.records.map((record) => ({ ...record, payload: null })) });
        }
      });

      test("with the starts of payloads has those of short ones", async () => {
        const tenant = await world.tenant();
        const payloads = [2, 200, 201, 16_384, 16_385].map((length) => bytes("{".padEnd(length, "x")));
        await world.accept(tenant, { payloads });
        const { records } = await world.page(tenant, { payload: "start" });
        expect(records.map(({ payload }) => payload?.length ?? null)).toEqual([null, 200, 200, 200, 2]);
        expect(Buffer.from(records[2]?.payload ?? []).toString()).toBe("{".padEnd(200, "x"));
      });

      test("counts a filtered list exactly up to 10,000; pages lie as deep as the list", async () => {
        const tenant = await world.tenant();
        const ids = await world.acceptMany(tenant, 10_000);
        const from = world.clock.now();
        expect(await world.page(tenant, { from, size: 1 })).toMatchObject({ total: 10_000, totalIsExact: true });
        const [newest = ""] = await world.acceptMany(tenant, 1);
        expect(await world.page(tenant, { from, size: 1 })).toMatchObject({ total: 10_000, totalIsExact: false });
        expect(await world.page(tenant, { size: 1 })).toMatchObject({ total: 10_001, totalIsExact: true });
        const newestFirst = [newest, ...ids.toReversed()];
        for (const given of [{}, { state: "FAILED" as const }, { from }]) {
          for (const page of [49, 60, 99]) {
            const deep = await world.page(tenant, { page, size: 100, ...given });
            const ids = deep.records.map(({ eventId }) => eventId);
            expect(ids).toEqual(newestFirst.slice(page * 100, (page + 1) * 100));
          }
        }
      });
    });

    describe("one event", () => {
      test("is its tenant's alone", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const stranger = await world.tenant();
        const id = await world.event(tenant, "failed");
        expect(await world.recordsOf(stranger.key, id)).toBeNull();
        expect(await world.attemptsOf(stranger.key, id)).toBeNull();
        expect(await world.store.previewDelivery(stranger.key, id)).toBeNull();
        expect(await world.store.eventOwner(id)).toBe(tenant.key);
        const neighbour = `${id.slice(0, -1)}${id.endsWith("0") ? "1" : "0"}`;
        for (const unknown of [neighbour, id.toUpperCase(), "evt_", ""]) {
          expect(await world.recordsOf(tenant.key, unknown)).toBeNull();
          expect(await world.attemptsOf(tenant.key, unknown)).toBeNull();
          expect(await world.store.eventOwner(unknown)).toBeNull();
        }
        await world.store.deleteTenant(tenant.key, 1);
        expect(await world.store.eventOwner(id)).toBeNull();
      });

      test("has its attempts in order, with a body that may come later", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const delivery = await world.delivery(tenant);
        expect(await world.attemptsOf(tenant.key, delivery.eventId)).toEqual([]);
        await world.settle(delivery, "retry");
        world.clock.advance(60_000);
        const [second] = await world.claim(tenant);
        if (!second) throw new Error("the retry is due");
        const { attempt } = await world.settle(second, "delivered");
        if (attempt) await world.store.completeResponseBody(attempt, bytes("the whole answer"));
        const at = world.clock.now();
        const common = { targetWebhook: a, durationMs: 12, replayGroupId: null, isReplayGroupIdCut: false };
        expect(await world.attemptsOf(tenant.key, delivery.eventId)).toEqual([
          {
            ...common,
            number: 1,
            startedAt: at - 60_000,
            statusCode: 503,
            error: `HTTP 503 from ${a}`,
            errorCode: "http_status",
            responseBody: "answer",
            answerHead,
          },
          {
            ...common,
            number: 2,
            startedAt: at,
            statusCode: 204,
            error: null,
            errorCode: null,
            responseBody: "the whole answer",
            answerHead: null,
          },
        ]);
      });

      test("is previewed as its newest record would be delivered", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const events = [{ payload: bytes("{}"), type: "order.paid" }];
        const { eventIds, deliveries } = await world.acceptOwned(tenant, { events });
        const preview = await world.store.previewDelivery(tenant.key, eventIds[0] ?? "");
        expect(preview).toMatchObject({
          eventId: eventIds[0],
          tenantId: tenant.id,
          url: b,
          type: "order.paid",
          payload: expect.anything(),
        });
        expect(preview?.deliveryKey).toBe(deliveries[1]?.deliveryKey ?? 0);
      });
    });
  });
}
