import { Database } from "bun:sqlite";
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { cpSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cardContext } from "../../src/billing/card-vault.ts";
import { prepareData } from "../../src/cli/prepare.ts";
import { runCommand } from "../../src/cli/run.ts";
import { headersContext } from "../../src/delivery/own-headers.ts";
import { signingSecretContext } from "../../src/delivery/signers.ts";
import { keyContext } from "../../src/domain/credentials.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createVault } from "../../src/lib/vault.ts";
import { keyFilesOf, makeNextKey } from "../../src/master-key-file.ts";
import { rotateStoreKey } from "../../src/store/open.ts";
import { sealedColumns } from "../../src/store/sqlite/rotate-key.ts";
import { createScriptedIo } from "../support/scripted-io.ts";
import { isOnPostgres } from "../support/server-data.ts";
import { startTestApp } from "../support/test-app.ts";

const root = mkdtempSync(join(tmpdir(), "postrider-rotate-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const accountId = "bill_1";
const card = "the processor's token";
const filled = join(root, "filled");
let shown: { id: string; password: string; before: string[] };

/** What an account sees of what is sealed, and what is derived for it. */
async function seen(dataDir: string, { id, password }: { id: string; password: string }): Promise<string[]> {
  const app = await startTestApp({ dataDir });
  const { body } = await app.request("POST", "/v1/tenants/auth/login", { body: { loginId: id, password } });
  const paths = ["/v1/tenants/api-keys", "/v1/tenants/signing-secret", "/v1/tenants/webhooks?expand=true"];
  const answers = await Promise.all(
    [...paths, `/v1/tenants/${id}/jwks.json`].map((path) => app.request("GET", path, { token: body.token })),
  );
  const inbox = (await app.request("GET", "/v1/inbox", { token: body.token })).body.url.split("/inbox/")[1];
  await app.stop({ keepData: true });
  return [...answers.map(({ status, text }) => `${status} ${text.replace(/"last_used":[^,]*,/, "")}`), inbox];
}

const keyIn = (folder: string, name = "master-key") => readFileSync(join(folder, name), "utf8").trim();
const vaultOf = (hex: string) => createVault(Buffer.from(hex, "hex"));

async function rotate(dataDir: string, env: Record<string, string> = {}) {
  const { io, out, err } = createScriptedIo({ env: { POSTRIDER_DATA_DIR: dataDir, ...env } });
  return { code: await runCommand(["rotate-key"], io), out: out.join("\n"), err: err.join("\n") };
}

function cardIn(folder: string): string {
  const client = new Database(join(folder, "postrider.db"));
  const row = client.query<{ sealed: Uint8Array }, []>("select sealed from saved_card").get();
  client.close();
  return Buffer.from(vaultOf(keyIn(folder)).open(row?.sealed ?? new Uint8Array(), cardContext(accountId))).toString();
}

const contexts = { key: keyContext, signingSecret: signingSecretContext, headers: headersContext, card: cardContext };

describe.skipIf(isOnPostgres)("rotate-key", () => {
  let folder: string;
  let n = 0;
  beforeEach(async () => {
    if (shown === undefined) await makeFilled();
    folder = join(root, `folder-${n++}`);
    cpSync(filled, folder, { recursive: true });
  });

  async function makeFilled() {
    const app = await startTestApp({ dataDir: filled });
    const account = await app.account({});
    const headers = { "X-Secret": "known to the receiver" };
    await account.put("/v1/tenants/webhooks", [{ webhook_url: "https://example.com/hook", headers }]);
    await app.stop({ keepData: true });
    const client = new Database(join(filled, "postrider.db"));
    client.run("insert into billing_account (key, id, tenant_key, state, credit_kobo) values (1, ?1, 1, 'active', 0)", [
      accountId,
    ]);
    client.run(
      `insert into saved_card (account_key, processor, sealed, signature, brand, last4, exp_month, exp_year, created_at)
       values (1, 'sandbox', ?1, 's', 'visa', '4081', '12', '2030', 1)`,
      [vaultOf(keyIn(filled)).seal(card, cardContext(accountId))],
    );
    client.close();
    shown = { id: account.id, password: account.password, before: await seen(filled, account) };
  }

  test("seals all anew, and nobody who has an account sees a difference", async () => {
    const former = keyIn(folder);
    const { code, out, err } = await rotate(folder);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toStartWith("5 values are sealed with the new master key");
    expect(keyIn(folder)).not.toBe(former);
    expect(existsSync(join(folder, "master-key.next"))).toBe(false);
    expect(await seen(folder, shown)).toEqual(shown.before);
    expect(cardIn(folder)).toBe(card);
    // Once more: what outlives the keys comes from the first one still.
    expect((await rotate(folder)).code).toBe(0);
    expect(await seen(folder, shown)).toEqual(shown.before);
    writeFileSync(join(folder, "master-key"), former, { mode: 0o600 });
    await expect(startTestApp({ dataDir: folder })).rejects.toThrow(
      "is not the one that the database was written with",
    );
  });

  test("leaves nothing in the file that opens with the former key", async () => {
    const client = new Database(join(folder, "postrider.db"));
    const sealed = sealedColumns.flatMap(({ table, column }) =>
      client
        .query<{ sealed: Uint8Array }, []>(`select ${column} as sealed from ${table} where ${column} is not null`)
        .all()
        .map((row) => Buffer.from(row.sealed)),
    );
    client.close();
    expect(sealed).toHaveLength(5);
    await rotate(folder);
    const file = readFileSync(join(folder, "postrider.db"));
    expect(sealed.filter((value) => file.includes(value))).toEqual([]);
  });

  test("knows every column with sealed values", () => {
    const client = new Database(join(folder, "postrider.db"));
    const found = client
      .query<{ table: string; column: string }, []>(
        `select t.name as "table", c.name as "column" from sqlite_schema t join pragma_table_info(t.name) c
         where t.type = 'table' and c.name like 'sealed%' and t.name <> 'vault_check'`,
      )
      .all();
    client.close();
    const sorted = (columns: readonly { table: string; column: string }[]) =>
      columns.map(({ table, column }) => `${table}.${column}`).toSorted();
    expect(sorted(found)).toEqual(sorted(sealedColumns));
  });

  const prepare = (dataDir: string) =>
    prepareData({
      config: { dataDir, databaseUrl: null, masterKeyFile: null, checkpoints: "own" as const },
      ...{ clock: systemClock, log: silentLog, io: { progress() {} } },
      ...{ isWatched: false, takesSnapshot: false, signal: new AbortController().signal },
    });

  test("that is killed while it writes leaves all under the former key, and the next one ends it", async () => {
    const former = keyIn(folder);
    const script = `
      import { rotateStoreKey } from ${JSON.stringify(join(import.meta.dir, "../../src/store/open.ts"))};
      const text = () => "x";
      rotateStoreKey({ dataDir: ${JSON.stringify(folder)}, from: Buffer.from(${JSON.stringify(former)}, "hex"),
        to: new Uint8Array(32).fill(9), outliving: {},
        contexts: { key: (a, b) => a + ":" + b, signingSecret: text, headers: text, card: text },
        onProgress: () => process.kill(process.pid, "SIGKILL") });`;
    const files = keyFilesOf(folder, null);
    makeNextKey(files, () => {});
    const child = Bun.spawn([process.execPath, "-e", script], { stdout: "ignore", stderr: "ignore" });
    await child.exited;
    expect(child.signalCode).toBe("SIGKILL");
    expect(await seen(folder, shown)).toEqual(shown.before);
    expect((await rotate(folder)).code).toBe(0);
    expect(await seen(folder, shown)).toEqual(shown.before);
    expect(keyIn(folder)).not.toBe(former);
  });

  test("that was killed before the key took its place is ended by the next start", async () => {
    const former = keyIn(folder);
    const to = makeNextKey(keyFilesOf(folder, null), () => {});
    rotateStoreKey({
      ...{ dataDir: folder, from: Buffer.from(former, "hex"), to, contexts, onProgress() {} },
      outliving: {},
    });
    expect(keyIn(folder)).toBe(former);
    const dataDir = await prepare(folder);
    dataDir?.release();
    expect(Buffer.from(dataDir?.secrets.masterKey ?? []).toString("hex")).toBe(to.toString("hex"));
    expect(keyIn(folder)).toBe(to.toString("hex"));
    expect((await rotate(folder)).code).toBe(0);
  });

  test("takes a key elsewhere, and keeps the former beside it", async () => {
    const file = join(root, `key-${n}`);
    renameSync(join(folder, "master-key"), file);
    const former = keyIn(root, `key-${n}`);
    const { code, err } = await rotate(folder, { POSTRIDER_MASTER_KEY_FILE: file });
    expect([code, err]).toEqual([0, ""]);
    expect(readFileSync(`${file}.before`, "utf8").trim()).toBe(former);
    renameSync(file, join(folder, "master-key"));
    expect(await seen(folder, shown)).toEqual(shown.before);
  });

  test("needs that no server runs, and SQLite", async () => {
    const app = await startTestApp({ dataDir: folder });
    expect((await rotate(folder)).err).toContain("Another server is using the data directory");
    await app.stop({ keepData: true });
    const url = "postgres://postrider@localhost/postrider";
    expect((await rotate(folder, { POSTRIDER_DATABASE_URL: url })).err).toContain("The data is in PostgreSQL");
    expect((await rotate(join(root, "nowhere"))).err).toContain("No server has run on");
    expect(existsSync(join(folder, "master-key.next"))).toBe(false);
  });
});
