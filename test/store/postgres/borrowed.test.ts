import { expect, test } from "bun:test";
import { systemClock } from "../../../src/lib/clock.ts";
import { createVault } from "../../../src/lib/vault.ts";
import { borrowDatabase } from "../../../src/store/postgres/borrowed.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";

describeWithPostgres("a database that is borrowed", () => {
  const postgres = usePostgres();
  const borrow = (url: string) => borrowDatabase({ url, clock: systemClock, durability: "waived" });
  const masterKey = new Uint8Array(32).fill(1);
  const anotherKey = new Uint8Array(32).fill(2);

  async function serve(url: string): Promise<void> {
    const { store } = await openPostgresStore({
      url,
      durability: "waived",
      clock: systemClock,
      vault: createVault(masterKey),
    });
    await store.close();
  }

  test("is empty again when it is given back, and can be borrowed again", async () => {
    const url = await postgres.database();
    const { place, giveBack } = await borrow(url);
    expect(url).toContain(place.slice(place.lastIndexOf("/")));
    expect(await giveBack(masterKey)).toBe(true);
    await serve(url);
    expect(await giveBack(masterKey)).toBe(true);
    const again = await borrow(url);
    await serve(url);
    expect(await again.giveBack(masterKey)).toBe(true);
  });

  test("is refused when anything is in it", async () => {
    const url = await postgres.database();
    await postgres.pool(url).write("create view somebodys as select 1 as one");
    await expect(borrow(url)).rejects.toThrow(/is not empty: it has somebodys\. Try: create database/);
    const counted = await postgres.database();
    await postgres.pool(counted).write("create sequence somebodys");
    await expect(borrow(counted)).rejects.toThrow(/it has somebodys\./);
    await expect(borrow(await postgres.migrated())).rejects.toThrow(/and \d+ more\. Try: create database/);
  });

  test("keeps what others have put there meanwhile", async () => {
    const url = await postgres.database();
    const { giveBack } = await borrow(url);
    await serve(url);
    expect(await giveBack(anotherKey)).toBe(false);
    const pool = postgres.pool(url);
    expect(await pool.read("select 1 as there from vault_check")).toEqual([{ there: 1 }]);
    const other = await postgres.database();
    const borrowed = await borrow(other);
    await postgres.pool(other).write("create table somebodys (n int)");
    expect(await borrowed.giveBack(masterKey)).toBe(false);
  });
});
