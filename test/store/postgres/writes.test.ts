import { expect, test } from "bun:test";
import { createWrites } from "../../../src/store/postgres/writes.ts";
import { createManualClock } from "../../support/manual-clock.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";

describeWithPostgres("a rare write", () => {
  const postgres = usePostgres();

  test("lags until it is committed, however long another node takes to heed it; closing waits for its answer", async () => {
    const time = createManualClock();
    const [isHeeding, heeded] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const writes = createWrites({
      pool: postgres.pool(await postgres.migrated(), { size: 1 }),
      clock: time.clock,
      atOnce: 1,
      moment: () => ({ now: 1, orderedNow: 1 }),
      changes: {
        write: async () => 1,
        passed() {
          isHeeding.resolve();
          return heeded.promise;
        },
        catchUp: async () => {},
      },
    });
    const [isBusy, mayCommit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const answered = writes.submit(async ({ changed }) => {
      isBusy.resolve();
      await mayCommit.promise;
      changed({ kind: "session_ended", sessionId: "s1" });
      return "done";
    });
    await isBusy.promise;
    time.advance(6_000);
    expect(writes.lagMs()).toBe(6_000);
    mayCommit.resolve();
    await isHeeding.promise;
    expect(writes.lagMs()).toBe(0);
    let isClosed = false;
    const closed = writes.close().then(() => {
      isClosed = true;
    });
    await Bun.sleep(0);
    expect(isClosed).toBe(false);
    heeded.resolve();
    await closed;
    expect(await answered).toBe("done");
  });
});
