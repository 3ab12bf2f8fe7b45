import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { isDamage } from "../../../src/store/sqlite/damage.ts";
import { databaseFile, openDatabase } from "../../../src/store/sqlite/open.ts";
import { createReader } from "../../../src/store/sqlite/reader.ts";
import { overwritePages, pagesOf } from "../../support/damaged-database.ts";
import { useSqlite } from "../../support/sqlite-store.ts";
import { refusalOf } from "../../support/store-factory.ts";

const sqlite = useSqlite();

describe("the reader", () => {
  const ask = (reader: ReturnType<typeof createReader>) =>
    reader.run("countEvents", { tenantKey: 1, fromSeq: 0, toSeq: 1 });

  test("answers, and says what went wrong", async () => {
    const { path } = await sqlite.store();
    const reader = createReader(path);
    sqlite.cleanUpFirst(() => reader.close());
    expect(await Promise.all([ask(reader), ask(reader)])).toEqual([0, 0]);
    const nonsense = reader.run("nonsense" as "countEvents", { tenantKey: 1, fromSeq: 0, toSeq: 1 });
    expect(await nonsense.catch((error: Error) => error.message)).toContain("not a function");
    expect(await ask(reader)).toBe(0);
  });

  test("tells damage from other failures", async () => {
    const dataDir = sqlite.emptyDir();
    openDatabase({ dataDir }).close();
    overwritePages(dataDir, pagesOf(dataDir, "delivery_by_tenant", "leaf"));
    const reader = createReader(join(dataDir, databaseFile));
    sqlite.cleanUpFirst(() => reader.close());
    const error = await ask(reader).catch((error: unknown) => error);
    expect([isDamage(error), error]).toEqual([true, expect.objectContaining({ code: "SQLITE_CORRUPT" })]);
    const nonsense = reader.run("nonsense" as "countEvents", { tenantKey: 1, fromSeq: 0, toSeq: 1 });
    expect(isDamage(await nonsense.catch((error: unknown) => error))).toBe(false);
  });

  test("ends with the store; what it is asked from then on is unavailable", async () => {
    const { path } = await sqlite.store();
    const reader = createReader(path);
    const last = ask(reader);
    await Promise.all([reader.close(), reader.close()]);
    expect(await last).toBe(0);
    expect(await refusalOf(ask(reader))).toBe("unavailable shutting_down");
  });
});
