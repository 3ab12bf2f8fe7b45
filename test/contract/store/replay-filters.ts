import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { ReplayFilter, ReplayKind } from "../../../src/domain/replay.ts";
import type { Tenant } from "../../../src/domain/tenant.ts";
import type { NewReplay } from "../../../src/store/store.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { bytes, createWorld, type Outcome, refusalOf, type World } from "../../support/store-factory.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";

/** The filters of `NewReplay` in `src/store/store.ts` as tests. */
export function replayFiltersContract(backend: StoreBackend): void {
  describe(`${backend.name} is a store:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    /** An event of a type, a second after the one before. */
    async function event(tenant: Tenant, type: string | null, ...outcomes: Outcome[]): Promise<string> {
      world.clock.advance(1_000);
      const { eventIds, deliveries } = await world.acceptOwned(tenant, { events: [{ payload: bytes("{}"), type }] });
      for (const [i, outcome] of outcomes.entries()) {
        const delivery = deliveries[i];
        if (delivery) await world.settle(delivery, outcome);
      }
      await world.store.release(deliveries.slice(outcomes.length));
      return eventIds[0] ?? "";
    }

    /** What waits, as "event webhook" in the order of the events. */
    async function waiting(tenant: Tenant, ids: readonly string[]): Promise<string[]> {
      const found: string[] = [];
      for (const [i, id] of ids.entries()) {
        const records = (await world.recordsOf(tenant.key, id)) ?? [];
        const pending = records.filter(({ state }) => state === "PENDING");
        found.push(...pending.map(({ targetWebhook }) => `${i} ${targetWebhook === a ? "a" : "b"}`));
      }
      return found;
    }

    /**
     * Five events, all of which the first webhook has failed; the second one has failed the odd ones and acknowledged the
     * rest. Those from the third on are of another type.
     */
    async function history() {
      const tenant = await world.tenant({ urls: [a, b] });
      const ids: string[] = [];
      const times: number[] = [];
      for (let i = 0; i < 5; i += 1) {
        ids.push(
          await event(tenant, i < 2 ? "order.paid" : "order.sent", "failed", i % 2 === 0 ? "delivered" : "failed"),
        );
        times.push(world.clock.now());
      }
      const [, webhookB] = await world.store.webhooks(tenant.key);
      return { tenant, ids, times, webhookB };
    }

    type Row = [filter: ReplayFilter, selected: number, waiting: string[]];

    const everything = ["0 a", "0 b", "1 a", "1 b", "2 a", "2 b", "3 a", "3 b", "4 a", "4 b"];
    const toB = ["0 b", "1 b", "2 b", "3 b", "4 b"];

    /** Of the events above; `from` and `to` are numbers of events. */
    const rows: Record<Exclude<ReplayKind, "single">, Row[]> = {
      all: [
        [{}, 5, everything],
        [{ webhook: b }, 5, toB],
        [{ type: "order.sent" }, 3, everything.slice(4)],
        [{ type: "order" }, 0, []],
        [{ from: 3 }, 2, everything.slice(6)],
        [{ to: 1 }, 2, everything.slice(0, 4)],
        [{ from: 1, to: 3 }, 3, everything.slice(2, 8)],
        [{ webhook: b, type: "order.sent", from: 1, to: 3 }, 2, ["2 b", "3 b"]],
        [{ code: "http_status" }, 5, ["0 a", "1 a", "1 b", "2 a", "3 a", "3 b", "4 a"]],
        [{ status: 503, webhook: b }, 2, ["1 b", "3 b"]],
        [{ code: "timeout" }, 0, []],
        [{ code: "timeout", status: 503 }, 0, []],
      ],
      timeline: [
        [{ webhook: b }, 3, ["1 b", "2 b", "3 b"]],
        [{ type: "order.sent" }, 2, ["2 a", "2 b", "3 a", "3 b"]],
        [{ from: 2, to: 4 }, 2, ["2 a", "2 b", "3 a", "3 b"]],
        [{ from: 4 }, 0, []],
        [{ code: "http_status", status: 503, type: "order.sent" }, 2, ["2 a", "3 a", "3 b"]],
      ],
      failed: [
        [{}, 5, ["0 a", "1 a", "1 b", "2 a", "3 a", "3 b", "4 a"]],
        [{ webhook: b }, 2, ["1 b", "3 b"]],
        [{ type: "order.sent" }, 3, ["2 a", "3 a", "3 b", "4 a"]],
        [{ webhook: b, type: "order.sent" }, 1, ["3 b"]],
        [{ from: 1, to: 2 }, 2, ["1 a", "1 b", "2 a"]],
        [{ status: 503 }, 5, ["0 a", "1 a", "1 b", "2 a", "3 a", "3 b", "4 a"]],
        [{ status: 500 }, 0, []],
        [{ webhook: b, code: "http_status", type: "order.paid" }, 1, ["1 b"]],
      ],
    };

    describe.each(Object.entries(rows))("a replay of the kind %s", (kind, cases) => {
      test.each(cases)(
        "narrowed to %j takes so many events, and no others: %i",
        async (narrowing, selected, expected) => {
          const { tenant, ids, times } = await history();
          const at = (n: number | undefined) => (n === undefined ? undefined : times[n]);
          const filter = { ...narrowing, from: at(narrowing.from), to: at(narrowing.to) };
          const range = kind === "timeline" ? { from: times[1] ?? 0, to: times[3] ?? 0 } : {};
          const asked = { kind: kind as keyof typeof rows, filter, ...range };
          expect(await world.store.previewReplay(tenant.key, asked)).toEqual({ selected, payloadsErased: 0 });
          const replay = await world.startReplay(tenant, asked.kind, asked);
          expect(replay.selected).toBe(selected);
          const after = (await world.queueAll(2)).at(-1);
          expect(after).toMatchObject({ queued: expected.length, skipped: 0 });
          expect(await waiting(tenant, ids)).toEqual(expected);
        },
      );
    });

    describe("the replay of one event", () => {
      const cases: [string, (given: { times: number[] }) => ReplayFilter, string[] | null][] = [
        ["for one webhook goes to it alone", () => ({ webhook: b }), ["2 b"]],
        ["of its type goes to all", () => ({ type: "order.sent" }), ["2 a", "2 b"]],
        ["of its time goes to all", ({ times }) => ({ from: times[2], to: times[2] }), ["2 a", "2 b"]],
        ["of its failure goes to those that have failed so", () => ({ code: "http_status" }), ["2 a"]],
        ["of another failure is refused", () => ({ code: "timeout" }), null],
        ["of a failure that none can be is refused", () => ({ code: "timeout", status: 503 }), null],
        ["of another type is refused", () => ({ type: "order.paid" }), null],
        ["of a later time is refused", ({ times }) => ({ from: times[3] }), null],
        ["of an earlier time is refused", ({ times }) => ({ to: times[1] }), null],
      ];
      test.each(cases)("%s", async (_, filterOf, expected) => {
        const { tenant, ids, times } = await history();
        const filter = filterOf({ times });
        const eventId = ids[2] ?? "";
        expect(await world.store.previewReplay(tenant.key, { kind: "single", eventId, filter })).toMatchObject({
          selected: expected ? 1 : 0,
        });
        const order: NewReplay = { id: "rpl_1", kind: "single", label: "one", eventId, filter };
        const refusal = await refusalOf(world.store.replayEvent(tenant.key, order, world.clock.now()));
        expect(refusal).toBe(expected ? "fulfilled" : "not_found event_not_selected");
        expect(await waiting(tenant, ids)).toEqual(expected ?? []);
      });
    });

    describe("a webhook that a replay is for", () => {
      test("is found by its id as well", async () => {
        const { tenant, ids, webhookB } = await history();
        const filter = { webhook: webhookB?.id };
        expect(await world.startReplay(tenant, "failed", { filter })).toMatchObject({ selected: 2 });
        await world.queueAll();
        expect(await waiting(tenant, ids)).toEqual(["1 b", "3 b"]);
      });

      test.each(["URL", "id"])(
        "has what it failed before it was removed and registered again, by its %s",
        async (by) => {
          const { tenant, ids } = await history();
          await world.setUrls(tenant, a);
          const [, again] = await world.setUrls(tenant, a, b);
          const filter = { webhook: by === "id" ? again?.id : b };
          expect(await world.startReplay(tenant, "failed", { filter })).toMatchObject({ selected: 2 });
          expect(await world.queueAll()).toMatchObject([{ queued: 2, skipped: 0 }]);
          expect(await waiting(tenant, ids)).toEqual(["1 b", "3 b"]);
          expect(await world.records(tenant, ids[1] ?? "")).toEqual([`FAILED ${a}`, `PENDING ${b}`]);
        },
      );

      test("that is removed before its turn comes gets nothing, and neither does another", async () => {
        const { tenant, ids } = await history();
        await world.startReplay(tenant, "failed", { filter: { webhook: b } });
        await world.setUrls(tenant, a);
        expect(await world.queueAll()).toMatchObject([{ status: "completed", selected: 2, queued: 0, skipped: 2 }]);
        expect(await waiting(tenant, ids)).toEqual([]);
      });

      test("is for nobody else's replays", async () => {
        const { webhookB } = await history();
        const stranger = await world.tenant({ urls: [a] });
        await world.event(stranger, "failed");
        const filter = { webhook: webhookB?.id };
        expect(await world.store.previewReplay(stranger.key, { kind: "all", filter })).toMatchObject({ selected: 0 });
      });
    });

    describe("a failure that a replay is for", () => {
      test("makes room for what is registered by then", async () => {
        const tenant = await world.tenant();
        const ids = [await event(tenant, null), await event(tenant, null)];
        await world.setUrls(tenant, a, b);
        expect(await world.startReplay(tenant, "failed", { filter: { code: "no_webhook" } })).toMatchObject({
          selected: 2,
        });
        await world.queueAll();
        expect(await waiting(tenant, ids)).toEqual(["0 a", "0 b", "1 a", "1 b"]);
      });

      const c = "https://c.example/hook";
      const d = "https://d.example/hook";
      /**
       * The first webhook has failed three events, the second one has acknowledged them, but failed the last. Then two are
       * added and the first is removed. The fourth event is later, and the two have failed it.
       */
      async function corrected() {
        const tenant = await world.tenant({ urls: [a, b] });
        const ids = [
          await event(tenant, null, "failed", "delivered"),
          await event(tenant, null, "failed", "delivered"),
          await event(tenant, null, "failed", "failed"),
        ];
        await world.setUrls(tenant, b, c, d);
        ids.push(await event(tenant, null, "delivered", "failed", "failed"));
        return { tenant, ids };
      }

      const ofRemoved: [string, ReplayFilter, { selected: number; queued: number; skipped: number }, string[]][] = [
        ["goes to nobody else", { status: 503 }, { selected: 4, queued: 3, skipped: 3 }, ["2 b", "3 c", "3 d"]],
        [
          "goes to the one that it is replayed for",
          { status: 503, webhook: c },
          { selected: 4, queued: 4, skipped: 0 },
          ["0 c", "1 c", "2 c", "3 c"],
        ],
        [
          "does not go to one that has a record of the event",
          { status: 503, webhook: b },
          { selected: 1, queued: 1, skipped: 0 },
          ["2 b"],
        ],
        [
          "is no reason to send other failures",
          { status: 500, webhook: c },
          { selected: 0, queued: 0, skipped: 0 },
          [],
        ],
        ["is none without the failure", { webhook: c }, { selected: 1, queued: 1, skipped: 0 }, ["3 c"]],
      ];
      test.each(ofRemoved)("of a webhook that is gone %s", async (_, filter, numbers, expected) => {
        const { tenant, ids } = await corrected();
        const asked = { kind: "failed", filter } as const;
        expect(await world.store.previewReplay(tenant.key, asked)).toMatchObject({ selected: numbers.selected });
        await world.startReplay(tenant, "failed", asked);
        expect((await world.queueAll(2)).at(-1)).toMatchObject(numbers);
        const waiting: string[] = [];
        for (const [i, id] of ids.entries()) {
          const pending = (await world.records(tenant, id)).filter((record) => record.startsWith("PENDING"));
          waiting.push(...pending.map((record) => `${i} ${record.slice("PENDING https://".length)[0]}`));
        }
        expect(waiting).toEqual(expected);
      });

      test("of no webhook goes to the one that it is replayed for", async () => {
        const tenant = await world.tenant();
        const ids = [await event(tenant, null)];
        await world.setUrls(tenant, a, b);
        const filter = { code: "no_webhook", webhook: b } as const;
        expect(await world.startReplay(tenant, "all", { filter })).toMatchObject({ selected: 1 });
        await world.queueAll();
        expect(await waiting(tenant, ids)).toEqual(["0 b"]);
      });

      test("of a URL that was removed and registered again goes to it", async () => {
        const { tenant, ids } = await history();
        await world.setUrls(tenant, a);
        await world.setUrls(tenant, a, b);
        await world.startReplay(tenant, "failed", { filter: { status: 503 } });
        expect((await world.queueAll()).at(-1)).toMatchObject({ selected: 5, queued: 7, skipped: 0 });
        expect(await waiting(tenant, ids)).toEqual(["0 a", "1 a", "1 b", "2 a", "3 a", "3 b", "4 a"]);
      });

      test("may be that of a record that waits", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const ids = [await event(tenant, null, "retry", "delivered")];
        const replay = await world.startReplay(tenant, "all", { filter: { status: 503 } });
        expect(await world.queueAll()).toMatchObject([{ id: replay.id, selected: 1, queued: 1 }]);
        expect(await waiting(tenant, ids)).toEqual(["0 a"]);
        expect((await world.due(tenant)).map(({ run }) => run)).toEqual([2]);
      });

      test("is looked for again as its turn comes", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await event(tenant, null, "failed");
        await world.startReplay(tenant, "all", { filter: { code: "http_status" } });
        await world.replayEvent(tenant, (await world.page(tenant)).records[0]?.eventId ?? "");
        for (const delivery of await world.claim(tenant)) await world.settle(delivery, "delivered");
        expect(await world.queueAll()).toMatchObject([{ status: "completed", selected: 1, queued: 0 }]);
      });
    });

    describe("a filter", () => {
      test("finds failures far behind others with the same code", async () => {
        const tenant = await world.tenant();
        const noise = Array.from({ length: 1_000 }, () => ({ payload: bytes("{}"), type: "noise" }));
        const ids = [await event(tenant, "order.paid")];
        for (let i = 0; i < 3; i += 1) await world.accept(tenant, { events: noise });
        ids.push(await event(tenant, "order.paid"));
        await world.setUrls(tenant, a);
        for (const kind of ["all", "failed"] as const) {
          const { id } = await world.startReplay(tenant, kind, { filter: { code: "no_webhook", type: "order.paid" } });
          await world.queueAll();
          expect(await world.replay(tenant, id)).toMatchObject({ selected: 2, queued: 2, status: "running" });
          expect(await waiting(tenant, ids)).toEqual(["0 a", "1 a"]);
          await world.store.cancelReplay(tenant.key, id, world.clock.now());
          while (await world.store.returnCancelled(100, world.clock.now()));
        }
      });

      test("is kept with the replay, also in the list and after a restart", async () => {
        const { tenant } = await history();
        const filter = { webhook: b, type: 'o"\u0000\ud83d\ude80', from: 1, to: 2_000 };
        const { id } = await world.startReplay(tenant, "all", { filter });
        await world.startReplay(tenant, "all", { filter: { webhook: undefined } });
        await world.reopen();
        expect((await world.replay(tenant, id)).filter).toEqual(filter);
        const { replays } = await world.replaysOf(tenant.key, { offset: 0, limit: 10 });
        expect(replays.map((replay) => replay.filter)).toEqual([null, filter]);
      });

      test("finds what it takes far behind the events that it leaves out", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const events = Array.from({ length: 1_000 }, () => ({ payload: bytes("{}"), type: "noise" }));
        const last = await event(tenant, "order.paid", "delivered");
        for (let i = 0; i < 3; i += 1) await world.accept(tenant, { events });
        const first = await event(tenant, "order.paid", "delivered");
        const { id } = await world.startReplay(tenant, "all", { filter: { type: "order.paid" } });
        await world.queueAll();
        expect(await world.replay(tenant, id)).toMatchObject({ selected: 2, queued: 2, status: "running" });
        expect([await world.records(tenant, first), await world.records(tenant, last)]).toEqual([
          [`PENDING ${a}`],
          [`PENDING ${a}`],
        ]);
      });
    });
  });
}
