import { expect, test } from "bun:test";
import { systemClock } from "../../../src/lib/clock.ts";
import { OutcomeUnknown } from "../../../src/store/postgres/faults.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { createManualClock } from "../../support/manual-clock.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { createCuttingProxy } from "../../support/postgres-proxy.ts";
import { bytes, newTenant, untyped } from "../../support/store-factory.ts";

describeWithPostgres("a node that ends", () => {
  const postgres = usePostgres();

  test("does so while the database is away, although it does not know whether an event was stored", async () => {
    const proxy = await createCuttingProxy(await postgres.migrated());
    postgres.cleanUpFirst(proxy.close);
    const time = createManualClock();
    const { store } = await openPostgresStore({
      url: proxy.url,
      clock: systemClock,
      machineClock: time.clock,
      durability: "waived",
    });
    const made = newTenant();
    const { key: tenantKey } = await store.createTenant(made, systemClock.now());
    const accept = () =>
      store.acceptEvents({
        ...{ tenantKey, apiKeyId: made.apiKey.id },
        ...{ events: [untyped(bytes("{}"))], roomFor: () => 0 },
      });
    /** Lets time pass until this is done, however it ends. */
    async function passUntil(done: Promise<unknown>): Promise<void> {
      let isDone = false;
      const ended = () => {
        isDone = true;
      };
      done.then(ended, ended);
      for (; !isDone; await Bun.sleep(1)) time.advance(100);
    }
    // The first one goes alone.
    await accept();
    const isCut = proxy.cutNext("answer", `{${tenantKey}}`);
    const outcome = accept().catch((error: unknown) => error);
    await passUntil(isCut);
    proxy.cutOff();
    await passUntil(store.close());
    expect(await outcome).toBeInstanceOf(OutcomeUnknown);
  });
});
