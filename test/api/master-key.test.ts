import { Database } from "bun:sqlite";
import { afterEach, describe, expect } from "bun:test";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { keyContext } from "../../src/domain/credentials.ts";
import { createVault, type Vault } from "../../src/lib/vault.ts";
import { createMasterKeyCheck } from "../../src/store/sqlite/master-key.ts";
import { migrate, migrations } from "../../src/store/sqlite/migrations.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { ingestOne } from "../support/api-server.ts";
import { testOnSqlite as test } from "../support/server-data.ts";
import { startTestApp } from "../support/test-app.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** The folder of a server that had an account with an event, and has ended. */
async function abandoned({ withAccount = true } = {}): Promise<string> {
  const dataDir = mkdtempSync(join(tmpdir(), "postrider-master-key-"));
  folders.push(dataDir);
  const app = await startTestApp({ dataDir });
  if (withAccount) await ingestOne(await app.account());
  await app.stop({ keepData: true });
  return dataDir;
}

const keyFile = "master-key";

function edit(dataDir: string, ...statements: string[]): void {
  const client = new Database(join(dataDir, databaseFile));
  for (const statement of statements) client.run(statement);
  client.close();
}

/** As the migration leaves a database of an earlier program. */
const beforeTheCheck = ["delete from vault_check"];

const outcome = (dataDir: string) =>
  startTestApp({ dataDir }).then(
    async (app) => {
      const ready = await app.request("GET", "/readyz");
      await app.stop({ keepData: true });
      return `ready: ${ready.status}`;
    },
    (error: Error) => `${error.name}: ${error.message}`,
  );

const refused = expect.stringMatching(
  /^StartupError: The master key .* is not the one.*Try: restore database and secrets/,
);

describe("a database and a master key that", () => {
  test("belong together start", async () => {
    expect(await outcome(await abandoned())).toBe("ready: 200");
  });

  test.each([
    ["an account", true, []],
    ["no account", false, []],
    ["an account, and comes from an earlier program", true, beforeTheCheck],
  ] as const)("do not belong together are refused, when it has %s", async (_name, withAccount, changes) => {
    const dataDir = await abandoned({ withAccount });
    edit(dataDir, ...changes);
    const other = await abandoned({ withAccount: false });
    const own = readFileSync(join(dataDir, keyFile));
    copyFileSync(join(other, keyFile), join(dataDir, keyFile));
    const before = readFileSync(join(dataDir, databaseFile));
    expect(await outcome(dataDir)).toEqual(refused);
    expect(readFileSync(join(dataDir, databaseFile)).equals(before)).toBe(true);
    writeFileSync(join(dataDir, keyFile), own);
    expect(await outcome(dataDir)).toBe("ready: 200");
  });

  test("meet as a database is restored beside the secrets of another folder are refused", async () => {
    const [dataDir, other] = [await abandoned(), await abandoned()];
    copyFileSync(join(other, databaseFile), join(dataDir, databaseFile));
    expect(await outcome(dataDir)).toEqual(refused);
  });

  test("come from an earlier program get their check value, and one that was damaged is written again", async () => {
    const dataDir = await abandoned();
    const checks = () => {
      const client = new Database(join(dataDir, databaseFile), { readonly: true });
      const rows = client.query<{ sealed: Uint8Array }, []>("select sealed from vault_check").all();
      client.close();
      return rows.map(({ sealed }) => sealed.length);
    };
    const [whole] = checks();
    for (const change of [beforeTheCheck, ["update vault_check set sealed = x'00'"]]) {
      edit(dataDir, ...change);
      expect(await outcome(dataDir)).toBe("ready: 200");
      expect(checks()).toEqual([whole as number]);
    }
  });
});

test("a database of the first program is judged by its API keys, before it is migrated", () => {
  const client = new Database(":memory:", { strict: true });
  const [own, other] = [createVault(new Uint8Array(32).fill(1)), createVault(new Uint8Array(32).fill(2))];
  migrate(client, migrations.slice(0, 1));
  client.run(
    "insert into tenant (key, id, name, email, tier, password_hash, created_at) values (1, 't1', '', '', 'free', '', 0)",
  );
  const addKey = (key: number, sealed: Uint8Array) =>
    client.run("insert into api_key (key, id, tenant_key, hash, sealed, created_at) values (?1, ?2, 1, ?3, ?4, 0)", [
      key,
      `key_${key}`,
      Buffer.of(key),
      sealed,
    ]);
  const verify = (vault: Vault) => () => createMasterKeyCheck(client, vault).verify();
  expect(verify(other)).not.toThrow();
  addKey(1, own.seal("svc_sk_1", keyContext("t1", "key_1")));
  expect(verify(other)).toThrow(/not the one that the database was written with/);
  addKey(2, Buffer.from("damaged"));
  expect(verify(own)).not.toThrow();
  client.close();
});

test("a server whose master key opens nothing is not ready", async () => {
  const app = await startTestApp();
  edit(app.dataDir, "update vault_check set sealed = x'00'");
  const { status, body } = await app.request("GET", "/readyz");
  expect([status, body.code, body.message]).toEqual([503, "storage_unavailable", expect.stringMatching(/master key/)]);
  await app.stop();
});
