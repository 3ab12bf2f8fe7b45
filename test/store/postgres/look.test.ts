import { expect, test } from "bun:test";
import { systemClock as clock } from "../../../src/lib/clock.ts";
import { lookAtServer } from "../../../src/store/postgres/look.ts";
import { migrations } from "../../../src/store/postgres/migrations.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";

describeWithPostgres("a look at PostgreSQL", () => {
  const { database, migrated, pool } = usePostgres();

  test("says what is in it and which transaction is the oldest, and makes no table where there is none", async () => {
    const url = await migrated();
    const known = migrations.length;
    const look = await lookAtServer({ url, clock, durability: "waived" });
    expect(look).toMatchObject({
      backend: expect.stringMatching(/^PostgreSQL \d+\.\d+ at /),
      schema: { found: known, known },
      figures: { newestEventAt: null, waiting: 0, oldestDueAt: null },
      server: { clockAheadMs: expect.any(Number), oldestSnapshotSeconds: expect.any(Number) },
    });
    expect(JSON.stringify(look)).not.toContain(new URL(url).password || "no password");

    await pool(url).write("insert into migration (version, name) values ($1, 'later')", [known + 1]);
    expect(await lookAtServer({ url, clock, durability: "waived" })).toMatchObject({
      schema: { found: known + 1, known },
      figures: null,
    });

    const empty = await database();
    for (let times = 0; times < 2; times++) {
      expect(await lookAtServer({ url: empty, clock, durability: "waived" })).toBeNull();
    }
  });
});
