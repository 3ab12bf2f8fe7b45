import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { listedLabelCharacters } from "../../../src/domain/replay.ts";
import { readAll } from "../../support/read-all.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { bytes, createWorld, newInboxDelivery, newReplay, type World } from "../../support/store-factory.ts";

const hook = "https://a.example/hook";
const other = "https://b.example/hook";
const textOf = (json: Uint8Array | null) =>
  JSON.parse(new TextDecoder("utf-8", { ignoreBOM: true }).decode(json ?? bytes("null")));

/** What the seam promises of a `Cursor`, and of the texts in the lists. */
export function listsContract(backend: StoreBackend): void {
  describe(`${backend.name} reads lists as they are needed:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    const large = (n: number) => bytes(JSON.stringify({ n, x: "x".repeat(100_000) }));

    test("a step has one entry at least, and ends with the one that reaches what was asked for", async () => {
      const tenant = await world.tenant();
      await world.accept(tenant, { payloads: [0, 1, 2, 3, 4, 5].map(large) });
      const { records } = await world.store.page({ tenantKey: tenant.key, page: 0, size: 10 });
      expect(records.ended).toBe(false);
      const steps = [await records.next(1), await records.next(150_000), await records.next(2 ** 20)];
      expect(
        steps.map((step) => step.map(({ payload }) => JSON.parse(Buffer.from(payload ?? []).toString()).n)),
      ).toEqual([[5], [4, 3], [2, 1, 0]]);
      expect([records.ended, await records.next(1)]).toEqual([true, []]);
    });

    test.each([1, 50_000, 2 ** 20])("the whole is the same in steps of %i bytes", async (step) => {
      const tenant = await world.tenant({ urls: [hook] });
      const payloads = Array.from({ length: 30 }, (_, n) => (n % 3 === 0 ? large(n) : bytes(`{"n":${n}.0}`)));
      await world.accept(tenant, { payloads });
      const { records } = await world.store.page({ tenantKey: tenant.key, page: 0, size: 100 });
      const read = await readAll(records, step);
      expect(read.map(({ payload }) => Buffer.from(payload ?? []).toString())).toEqual(
        payloads.toReversed().map((payload) => Buffer.from(payload).toString()),
      );
    });

    test("which records it has is fixed; one that has left the state meanwhile is passed over", async () => {
      const tenant = await world.tenant({ urls: [hook] });
      const ids = [await world.event(tenant, "failed"), await world.event(tenant, "failed")];
      const failed = await world.store.page({ tenantKey: tenant.key, page: 0, size: 10, state: "FAILED" });
      await world.event(tenant, "failed");
      await world.replayEvent(tenant, ids[0] ?? "");
      expect((await readAll(failed.records)).map(({ eventId }) => eventId)).toEqual([ids[1] ?? ""]);
      expect(failed.total).toBe(2);
    });

    test("entries that are gone are passed over", async () => {
      const tenant = await world.tenant();
      await world.accept(tenant, { payloads: [large(0), large(1)] });
      const { records } = await world.store.page({ tenantKey: tenant.key, page: 0, size: 10 });
      await records.next(1);
      await world.store.deleteTenant(tenant.key, 1);
      while (await world.store.eraseDeleted(1_000));
      expect(await records.next(1)).toEqual([]);
    });

    test("the records of one event are complete, although a replay has put others in their place meanwhile", async () => {
      const tenant = await world.tenant();
      const id = await world.event(tenant);
      const asked = [await world.store.records(tenant.key, id), await world.store.records(tenant.key, id)];
      await world.setUrls(tenant, hook, other);
      await world.replayEvent(tenant, id);
      const read = async (list: (typeof asked)[0], step: number) =>
        list && (await readAll(list, step)).map(({ state, targetWebhook }) => `${state} ${targetWebhook}`);
      const both = [`PENDING ${hook}`, `PENDING ${other}`];
      expect([await read(asked[0] ?? null, 1), await read(asked[1] ?? null, 2 ** 20)]).toEqual([both, both]);
    });

    test("the records of an event that is erased meanwhile are none", async () => {
      const tenant = await world.tenant({ urls: [hook] });
      const list = await world.store.records(tenant.key, await world.event(tenant));
      await world.store.deleteTenant(tenant.key, 1);
      while (await world.store.eraseDeleted(1_000));
      expect(list && (await readAll(list))).toEqual([]);
    });

    test("attempts come in pages, the oldest first, with how many there are", async () => {
      const tenant = await world.tenant({ urls: [hook] });
      const id = await world.event(tenant, "failed");
      for (let n = 0; n < 4; n++) {
        world.clock.advance(1_000);
        await world.replayEvent(tenant, id);
        for (const delivery of await world.claim(tenant)) await world.settle(delivery, "failed");
      }
      const numbers = async (offset: number) =>
        (await world.attemptsOf(tenant.key, id, { offset, limit: 2 }))?.map(({ number }) => number);
      expect([await numbers(0), await numbers(2), await numbers(4), await numbers(6)]).toEqual([
        [1, 2],
        [3, 4],
        [5],
        [],
      ]);
      expect((await world.store.attempts(tenant.key, id, { offset: 4, limit: 2 }))?.total).toBe(5);
    });

    test.each([
      ["short", "after lunch", false],
      ["as long as is listed", "x".repeat(listedLabelCharacters), false],
      ["longer", "x".repeat(listedLabelCharacters + 1), true],
      ["of 60 KB", `"quoted"\n\u0000 é 🚀 ${"y".repeat(60_000)}`, true],
      ["longer, cut within a character", `${"z".repeat(listedLabelCharacters - 2)}🚀🚀`, true],
    ])("a label that is %s is whole where it belongs, and cut beside attempts", async (_, label, isCut) => {
      const tenant = await world.tenant({ urls: [hook] });
      const id = await world.event(tenant, "failed");
      const order = newReplay("single", { eventId: id, label });
      expect((await world.store.replayEvent(tenant.key, order, world.clock.now())).replay.replayGroupId).toBe(label);
      const [delivery] = await world.claim(tenant);
      if (!delivery) throw new Error("The replay is due");
      expect(delivery.replayGroupId).toBe(label);
      await world.settle(delivery, "delivered");

      expect((await world.replay(tenant, order.id)).replayGroupId).toBe(label);
      const { replays } = await world.store.replays(tenant.key, { offset: 0, limit: 10 });
      expect((await readAll(replays)).map(({ replayGroupId }) => textOf(replayGroupId))).toEqual([label]);
      expect((await world.page(tenant)).records.map(({ replayGroupId }) => replayGroupId)).toEqual([label]);
      const [first, second] = (await world.attemptsOf(tenant.key, id)) ?? [];
      expect(first).toMatchObject({ replayGroupId: null, isReplayGroupIdCut: false });
      const shown = second?.replayGroupId ?? "";
      expect([second?.isReplayGroupIdCut, shown === label, shown.endsWith("…")]).toEqual([isCut, !isCut, isCut]);
      expect(shown.length).toBeLessThanOrEqual(listedLabelCharacters);
      expect([shown.isWellFormed(), label.startsWith(isCut ? shown.slice(0, -1) : shown)]).toEqual([true, true]);
    });

    test("replays far behind the last one are an empty page", async () => {
      const tenant = await world.tenant();
      await world.startReplay(tenant, "all");
      const { replays, total } = await world.store.replays(tenant.key, { offset: 999_999_999_999 * 1000, limit: 1000 });
      expect([await readAll(replays), total]).toEqual([[], 1]);
    });

    test("a long label is kept once for an account, however many replays carry it", async () => {
      const [one, two] = [await world.tenant(), await world.tenant()];
      const label = "x".repeat(60_000);
      const rows = async () => Object.values(await world.count()).reduce((sum, n) => sum + n, 0);
      const added: number[] = [];
      for (const [tenant, given] of [
        [one, label],
        [two, label],
        [one, label],
        [one, label],
        [one, `${label}y`],
      ] as const) {
        const before = await rows();
        await world.startReplay(tenant, "all", { label: given });
        added.push((await rows()) - before);
      }
      expect(added).toEqual([2, 2, 1, 1, 2]);
    });

    test("the bodies of an inbox are the texts that came", async () => {
      const tenant = await world.tenant();
      const text = `{"a":"\\"\\u00e9\\\\ é 🚀 \u2028","b": [\n\t1.0 ] ,"c":"${"x".repeat(100_000)}"}`;
      await world.store.keepInboxDelivery(tenant.key, newInboxDelivery({ body: bytes(text) }), 10);
      const { deliveries } = await world.store.inboxDeliveries(tenant.key, { limit: 10 });
      expect((await readAll(deliveries)).map(({ body }) => textOf(body))).toEqual([text]);
    });
  });
}
