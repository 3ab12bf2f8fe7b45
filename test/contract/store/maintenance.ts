import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { DueDelivery } from "../../../src/domain/delivery.ts";
import { parseEventId } from "../../../src/lib/id.ts";
import type { Job } from "../../../src/store/jobs.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import {
  bytes,
  createWorld,
  newSigningKeyRow,
  refusalOf,
  settlementOf,
  type World,
} from "../../support/store-factory.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";
const c = "https://c.example/hook";
const dayMs = 86_400_000;

/** `MaintenanceVerbs` of `src/store/store.ts` as tests, and all verbs together. */
export function maintenanceContract(backend: StoreBackend): void {
  describe(`${backend.name} is a store:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    test("who opens it alone has every job that it does", async () => {
      await world.jobs.offer("biller");
      const all: Record<Job, true> = { replayer: true, biller: true, janitor: true };
      for (const job of Object.keys(all)) expect(world.jobs.holds(job as Job)).toBe(true);
    });

    describe("maintenance", () => {
      test("prune forgets what has outlived its use, and nothing else", async () => {
        const tenant = await world.tenant();
        const { key } = tenant;
        const start = world.clock.now();
        for (const name of ["k1", "k2"]) {
          await world.accept(tenant, { idempotency: { key: name, fingerprint: bytes(name) } });
          await world.store.endSession(name, world.clock.now());
          await world.store.rememberLogin(key, name, world.clock.now() - 29 * dayMs);
          await world.store.rotateSigningKey(key, newSigningKeyRow(), start, world.clock.now(), start);
          await world.store.rotateSigningSecret(key, bytes(name), world.clock.now(), start);
          world.clock.advance(1_000);
        }
        const before = await world.count();
        expect(await world.store.prune(start - 1, 10)).toBe(false);
        expect(await world.count()).toEqual(before);
        expect(await world.store.prune(start + dayMs, 10)).toBe(false);
        const left = await world.count();
        expect(left).toMatchObject({ idempotency: 1, login_address: 1 });
        expect(left).toMatchObject({ event: 2, tenant: 1, api_key: 1 });
        expect(await world.store.hasLoggedInSince(key, "k2", 0)).toBe(true);
      });

      test("prune removes what has ended a day later, so that a clock that is ahead for a while brings nothing back", async () => {
        const { key } = await world.tenant();
        const endsAt = world.clock.now();
        await world.store.endSession("s", endsAt);
        await world.store.rotateSigningKey(key, newSigningKeyRow(), endsAt, endsAt, endsAt);
        await world.store.rotateSigningSecret(key, bytes("second"), endsAt, endsAt);
        const counts = async () => {
          const { ended_session, signing_key, signing_secret } = await world.count();
          return [ended_session, signing_key, signing_secret];
        };
        await world.store.prune(endsAt + dayMs - 1, 10);
        expect(await counts()).toEqual([1, 2, 2]);
        await world.store.prune(endsAt + dayMs, 10);
        expect(await counts()).toEqual([0, 1, 1]);
      });

      test("prune takes at most so many at a time", async () => {
        for (let i = 0; i < 5; i++) await world.store.endSession(`s${i}`, 1);
        expect(await world.store.prune(dayMs + 2, 2)).toBe(true);
        expect((await world.count()).ended_session).toBe(3);
        while (await world.store.prune(dayMs + 2, 2));
        expect((await world.count()).ended_session).toBe(0);
      });

      test("giving space back comes to an end", async () => {
        const tenant = await world.tenant();
        const payloads = Array.from({ length: 100 }, () => new Uint8Array(10_000).fill(97));
        await world.accept(tenant, { payloads });
        await world.store.deleteTenant(tenant.key, 1);
        while (await world.store.eraseDeleted(1_000));
        while (await world.store.reclaim(400_000));
        expect(await world.store.reclaim(40_000)).toBe(false);
      });

      test("a probe is a write", async () => {
        await world.store.probe();
        expect(world.store.oldestWaitingWriteMs()).toBe(0);
        const probe = world.store.probe();
        world.clock.advance(50);
        expect(world.store.oldestWaitingWriteMs()).toBe(50);
        await probe;
        expect(world.store.oldestWaitingWriteMs()).toBe(0);
      });

      test("closing commits what was submitted, and refuses what comes after", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const accepted = world.accept(tenant);
        const closed = world.store.close();
        expect(await refusalOf(world.store.probe())).toBe("unavailable shutting_down");
        expect(await refusalOf(accepted)).toBe("fulfilled");
        await closed;
        await world.store.close();
        await world.reopen();
        expect(await world.totals(tenant)).toEqual({ PENDING: 1, DELIVERED: 0, FAILED: 0 });
      });
    });

    test("a walk of random verbs keeps counters and records in step", async () => {
      const tenant = await world.tenant({ urls: [a, b] });
      let seed = 7;
      const random = (below: number) => {
        seed = (seed * 48_271) % 2_147_483_647;
        return seed % below;
      };
      const ids: string[] = [];
      const held: DueDelivery[] = [];
      for (let step = 0; step < 300; step++) {
        const action = random(10);
        if (action <= 2) ids.push((await world.accept(tenant)).eventIds[0] ?? "");
        else if (action <= 4) {
          const due = await world.claim(tenant);
          held.push(...due.slice(0, 3));
          await world.store.release(due.slice(3));
          const [delivery] = held.splice(random(held.length || 1), 1);
          const outcome = (["delivered", "failed", "retry"] as const)[random(3)] ?? "failed";
          if (delivery) await world.store.settle(settlementOf(delivery, outcome, world.clock.now()));
        } else if (action === 5) await world.setUrls(tenant, ...[a, b, c].filter(() => random(2) === 0));
        else if (action === 6) await world.store.failUndeliverable(2);
        else if (action === 7 && ids.length > 0) {
          // Refused of one that has gone, or whose payload has.
          await world.replayEvent(tenant, ids[random(ids.length)] ?? "").catch(() => {});
        } else if (action === 8) {
          // Refused while eleven have not ended.
          await world.startReplay(tenant, random(2) === 0 ? "all" : "failed").catch(() => {});
          await world.store.queueReplayBatch(5, world.clock.now());
          await world.queueAll(7);
        } else if (action === 9) {
          const seqs = [1, 2, 3].map(() => parseEventId(ids[random(ids.length || 1)] ?? "")?.seq ?? 0);
          await world.store.erasePayloads(tenant.key, seqs.slice(0, 1), world.clock.now());
          await world.store.forgetEvents(tenant.key, [...new Set(seqs.slice(1))], world.clock.now());
        }
        world.clock.advance(random(30_000));
        await world.totals(tenant);
      }
      await world.setUrls(tenant);
      while (await world.store.failUndeliverable(10));
      await world.queueAll();
      expect((await world.totals(tenant)).PENDING).toBe(0);
      const { replays } = await world.replaysOf(tenant.key, { offset: 0, limit: 1_000 });
      for (const { status, queued, delivered, failed, superseded } of replays) {
        expect({ status, ended: delivered + failed + superseded }).toEqual({ status: "completed", ended: queued });
      }
    }, 60_000);
  });
}
