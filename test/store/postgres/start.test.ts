import { expect, test } from "bun:test";
import { SQL } from "bun";
import { shuttingDown } from "../../../src/domain/errors.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { createVault } from "../../../src/lib/vault.ts";
import { DeadlinePassed, OutcomeUnknown, storageUnavailable } from "../../../src/store/postgres/faults.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { untilAnswered } from "../../../src/store/postgres/until-answered.ts";
import { createFastClock } from "../../support/fast-clock.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { createCuttingProxy } from "../../support/postgres-proxy.ts";

describeWithPostgres("a server that starts", () => {
  const postgres = usePostgres();

  const patience = { url: "postgres://db.test/postrider", clock: createFastClock(1_000), onFailure() {} };
  const diskFull = new SQL.PostgresError("it says so", { code: "ERR_POSTGRES_SERVER_ERROR", errno: "53100" });
  const isClosed = new SQL.PostgresError("it says so", { code: "ERR_POSTGRES_SERVER_ERROR", errno: "42501" });
  const isHeld = new SQL.PostgresError("it says so", { code: "ERR_POSTGRES_SERVER_ERROR", errno: "55P03" });
  const noneLeft = new SQL.PostgresError("it says so", { code: "ERR_POSTGRES_SERVER_ERROR", errno: "53300" });

  test.each<[why: string, error: Error, said: RegExp]>([
    ["nobody knows", storageUnavailable("passing"), /^The database has not answered for 30 s, so .*Try: see whether/],
    [
      "it stands still",
      new OutcomeUnknown(new DeadlinePassed("Not for 12000 ms")),
      /^The database has not answered for 30 s \(Not for 12000 ms\), so .*Try: see whether/,
    ],
    [
      "it has no connection left",
      storageUnavailable("exhausted", noneLeft),
      /^After 30 s, the database at db\.test\/postrider still has no connection left \(it says so\)\. Try: raise/,
    ],
    [
      "its disk is full",
      storageUnavailable("full", diskFull),
      /^After 30 s, the database at db\.test\/postrider still has no room on its disk \(it says so\)\. Try: free/,
    ],
    [
      "its tables are closed to the user",
      storageUnavailable("broken", isClosed),
      /^After 30 s, the database at db\.test\/postrider still does not let the user do it \(it says so\)\. Try: connect/,
    ],
    [
      "a transaction that stays open is in the way of its upgrade",
      storageUnavailable("passing", isHeld),
      /^After 30 s, the database at db\.test\/postrider still has a table to be changed .* \(it says so\)\. Try: end/,
    ],
  ])("says so and ends when the database does not answer for long, because %s", async (_, error, said) => {
    let tries = 0;
    const away = () => {
      tries += 1;
      return Promise.reject(error);
    };
    await expect(untilAnswered(patience, away)).rejects.toThrow(said);
    expect(tries).toBeGreaterThan(2);
  });

  test("stops waiting at once when it is asked to end, even for an answer that never comes", async () => {
    const asked = new AbortController();
    const ended = untilAnswered({ ...patience, signal: asked.signal }, () => new Promise<never>(() => {}));
    asked.abort();
    await expect(ended).rejects.toThrow(shuttingDown().message);
    const tries = untilAnswered({ ...patience, signal: asked.signal }, () => Promise.reject(new Error("tried")));
    await expect(tries).rejects.toThrow(shuttingDown().message);
  });

  test("fails at once for what is not a matter of the connection", async () => {
    const wrong = new Error("wrong");
    await expect(untilAnswered(patience, () => Promise.reject(wrong))).rejects.toBe(wrong);
  });

  test.each([
    ["what it is", "server_version_num"],
    ["whether the data was moved", "move_mark"],
    ["how far its schema is", "version from migration"],
    ["what time it is", "clock_timestamp()) * 1000)::float8 as now"],
    ["which partitions there are", "pg_inherits"],
    ["where numbers go on", "max(seq)"],
    ["for a place", "insert into node"],
    ["what has changed", "from change_head"],
    ["to be told of changes", "LISTEN"],
  ])("starts though the connection is lost on which it asks %s", async (_, text) => {
    const proxy = await createCuttingProxy(await postgres.migrated());
    const cut = proxy.cutNext("request", text);
    const opened = await openPostgresStore({ url: proxy.url, clock: systemClock, durability: "waived", onTime() {} });
    await cut;
    expect(opened.lease.mayStart()).toBe(true);
    await opened.store.close();
    await proxy.close();
  });

  test("starts though the connection is lost on which it asks for the secrets of all servers, last of all", async () => {
    const proxy = await createCuttingProxy(await postgres.migrated());
    postgres.cleanUpFirst(proxy.close);
    let cut = Promise.resolve();
    const { store, keptSecrets } = await openPostgresStore({
      ...{ url: proxy.url, clock: systemClock, durability: "waived", vault: createVault(new Uint8Array(32)) },
      noteNode() {
        cut = proxy.cutNext("request", "from vault_check");
      },
    });
    await cut;
    expect(keptSecrets).toEqual({});
    await store.close();
  });
});
