import { expect, test } from "bun:test";
import { createDatabaseClock } from "../../../src/lib/database-clock.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { createManualClock } from "../../support/manual-clock.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";

describeWithPostgres("the clock of a node", () => {
  const postgres = usePostgres();

  test("goes by the database's from the start, and at each heartbeat", async () => {
    const time = createManualClock();
    const clock = createDatabaseClock(time.clock);
    let told = 0;
    let onTold = () => {};
    const { store } = await openPostgresStore({
      url: await postgres.migrated(),
      clock,
      machineClock: time.clock,
      durability: "waived",
      onTime(heard) {
        told += 1;
        clock.heard(heard);
        onTold();
      },
    });
    // That database is on this machine.
    const isRight = () => Math.abs(clock.now() - Date.now()) < 60_000;
    expect([told > 0, isRight()]).toEqual([true, true]);
    const again = new Promise<void>((resolve) => {
      onTold = resolve;
    });
    time.advance(3_000);
    await again;
    expect(isRight()).toBe(true);
    await store.close();
  });
});
