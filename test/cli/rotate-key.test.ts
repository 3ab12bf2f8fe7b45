import { Database } from "bun:sqlite";
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cardContext } from "../../src/billing/card-vault.ts";
import { prepareData } from "../../src/cli/prepare.ts";
import { runCommand } from "../../src/cli/run.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createVault } from "../../src/lib/vault.ts";
import { keyFilesOf, makeNextKey, promoteNextKey } from "../../src/master-key-file.ts";
import { sealedContexts } from "../../src/sealed-contexts.ts";
import { rotateStoreKey } from "../../src/store/open.ts";
import { sealedColumns, sealedPlaces } from "../../src/store/sealed.ts";
import { overwritePages, pagesOf } from "../support/damaged-database.ts";
import { createScriptedIo } from "../support/scripted-io.ts";
import { isOnPostgres } from "../support/server-data.ts";
import { mountSmallDisk } from "../support/small-disk.ts";
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

const allSealed = (client: Database): Buffer[] =>
  sealedPlaces.flatMap((place) =>
    client
      .query<{ sealed: Uint8Array | null }, []>(`select ${sealedColumns[place]} as sealed from ${place}`)
      .all()
      .flatMap(({ sealed }) => (sealed === null ? [] : [Buffer.from(sealed)])),
  );

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
    await account.put("/v1/tenants/webhooks", [{ webhook_url: "https://example.com/hook", headers, paused: true }]);
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
    expect(out).toMatch(/^The master key was replaced, and the new one is in .*; 5 values resealed\./);
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
    const sealed = allSealed(client);
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
    expect(found.map(({ table, column }) => `${table}.${column}`).toSorted()).toEqual(
      sealedPlaces.map((place) => `${place}.${sealedColumns[place]}`).toSorted(),
    );
  });

  const prepare = (dataDir: string, masterKeyFile: string | null = null, log = silentLog) =>
    prepareData({
      config: { dataDir, databaseUrl: null, masterKeyFile, checkpoints: "own" as const },
      ...{ clock: systemClock, log, io: { progress() {} } },
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

  test.each([16, 48])("says that the disk is full where it has %d KiB left, and changes nothing", async (freeKib) => {
    const disk = mountSmallDisk(4);
    if (disk === null) return;
    try {
      const former = keyIn(folder);
      const small = join(disk.folder, "data");
      cpSync(folder, small, { recursive: true });
      disk.fill();
      const ballast = join(disk.folder, "ballast");
      truncateSync(ballast, statSync(ballast).size - freeKib * 1024);
      const { code, err } = await rotate(small);
      const path = join(small, "postrider.db");
      expect([code, err]).toEqual([
        1,
        `postrider: The disk of ${path} is full. Try: free some space; nothing was changed.`,
      ]);
      expect(keyIn(small)).toBe(former);
      disk.empty();
      expect((await rotate(small)).code).toBe(0);
      expect(keyIn(small)).not.toBe(former);
    } finally {
      disk.unmount();
    }
  });

  test("that meets a damaged page says so", async () => {
    overwritePages(folder, pagesOf(folder, "saved_card", "leaf"));
    const { code, err } = await rotate(folder);
    expect([code, err]).toEqual([1, expect.stringMatching(/is damaged \(.*\)\. Try: restore it from a backup/)]);
  });

  test("that was killed before the key took its place is ended by the next start", async () => {
    const former = keyIn(folder);
    const to = makeNextKey(keyFilesOf(folder, null), () => {});
    rotateStoreKey({
      ...{ dataDir: folder, from: Buffer.from(former, "hex"), to, contexts: sealedContexts, onProgress() {} },
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
    const { code, out, err } = await rotate(folder, { POSTRIDER_MASTER_KEY_FILE: file });
    expect([code, err]).toEqual([0, ""]);
    expect(out).toContain(`Earlier backups still need the old key, which is in ${file}.before.`);
    expect(readFileSync(`${file}.before`, "utf8").trim()).toBe(former);
    renameSync(file, join(folder, "master-key"));
    expect(await seen(folder, shown)).toEqual(shown.before);
  });

  test.skipIf(process.getuid?.() !== 0)("leaves every file to its user when root runs it", async () => {
    for (const name of readdirSync(folder)) chownSync(join(folder, name), 12_345, 12_345);
    chownSync(folder, 12_345, 12_345);
    rmSync(join(folder, "lock.db"), { force: true });
    expect((await rotate(folder)).code).toBe(0);
    expect(readdirSync(folder).filter((name) => statSync(join(folder, name)).uid !== 12_345)).toEqual([]);
    // Also what is there before the key takes its place, and what is kept of it.
    const files = keyFilesOf(folder, null, true);
    makeNextKey(files, () => {});
    expect(statSync(files.next).uid).toBe(12_345);
    promoteNextKey(files);
    expect(statSync(`${files.current}.before`).uid).toBe(12_345);
  });

  test.each([
    ["in the data directory, which is in its backups", false, false, false],
    ["in the data directory, beside a database on PostgreSQL", false, true, true],
    ["elsewhere", true, false, true],
    ["elsewhere, beside a database on PostgreSQL", true, true, true],
  ])("keeps the former key where no backup has it: %s", (_, isElsewhere, isShared, isKept) => {
    const former = keyIn(folder);
    const files = keyFilesOf(folder, isElsewhere ? join(folder, "master-key") : null, isShared);
    const next = makeNextKey(files, () => {});
    promoteNextKey(files);
    expect(keyIn(folder)).toBe(next.toString("hex"));
    expect(existsSync(join(folder, "master-key.before"))).toBe(isKept);
    if (!isKept) return;
    expect(keyIn(folder, "master-key.before")).toBe(former);
    expect(statSync(join(folder, "master-key.before")).mode & 0o777).toBe(0o600);
  });

  test("keeps the key of the copies that upgrades have made, whatever replaces it after that", async () => {
    const former = keyIn(folder);
    const snapshot = "postrider.db.pre-migration-v1-to-v2.bak";
    cpSync(join(folder, "postrider.db"), join(folder, snapshot));
    for (const _ of [1, 2]) expect((await rotate(folder)).code).toBe(0);
    expect(keyIn(folder, `${snapshot}.master-key`)).toBe(former);
    expect(statSync(join(folder, `${snapshot}.master-key`)).mode & 0o777).toBe(0o600);
    renameSync(join(folder, snapshot), join(folder, "postrider.db"));
    renameSync(join(folder, `${snapshot}.master-key`), join(folder, "master-key"));
    expect(await seen(folder, shown)).toEqual(shown.before);
  });

  test("beside a server that takes events: none is refused, and nobody sees a difference", async () => {
    const former = keyIn(folder);
    const client = new Database(join(folder, "postrider.db"));
    const sealed = allSealed(client);
    client.close();
    const app = await startTestApp({ dataDir: folder, keySettleMs: 20 });
    const account = await app.signIn(shown.id, shown.password);
    let isOver = false;
    const statuses = (async () => {
      const found = new Set<number>();
      while (!isOver) found.add((await account.ingest({ n: 1 })).status);
      return [...found];
    })();
    const { code, out, err } = await rotate(folder);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(/^The master key was replaced, and the new one is in .*; 5 values resealed\./);
    isOver = true;
    expect(await statuses).toEqual([202]);
    expect(keyIn(folder)).not.toBe(former);
    expect(existsSync(join(folder, "master-key.next"))).toBe(false);
    // What was made meanwhile, and a list that leaves the headers as they are.
    await account.put("/v1/tenants/webhooks", [{ webhook_url: "https://example.com/hook" }]);
    const audit = await app.request("GET", "/operator/audit", { token: app.operatorToken });
    expect(audit.text).toContain("master_key.rotated");
    expect(app.log.filter((line) => line.includes(former) || line.includes(keyIn(folder)))).toEqual([]);
    await app.stop({ keepData: true });
    expect(await seen(folder, shown)).toEqual(shown.before);
    expect(cardIn(folder)).toBe(card);
    const file = readFileSync(join(folder, "postrider.db"));
    expect(sealed.filter((value) => file.includes(value))).toEqual([]);
    // The next one, without a server, finds what outlives the keys.
    expect((await rotate(folder)).code).toBe(0);
    expect(await seen(folder, shown)).toEqual(shown.before);
  });

  test("beside a server, when it is interrupted, says that the rotation goes on there", async () => {
    const former = keyIn(folder);
    const app = await startTestApp({ dataDir: folder });
    const { io, out, err, progress, interrupt, when } = createScriptedIo({ env: { POSTRIDER_DATA_DIR: folder } });
    const ended = runCommand(["rotate-key"], io);
    await when(progress, (line) => line.includes("Resealing"));
    interrupt();
    expect(await ended).toBe(130);
    expect([out, progress.at(-1)]).toEqual([[], ""]);
    expect(err).toEqual([expect.stringMatching(/^The rotation goes on in the server, .* the same command watches it/)]);
    const { body } = await app.request("GET", "/operator/master-key", { token: app.operatorToken });
    expect(body).toMatchObject({ rotating: true, in_place: true });
    expect(keyIn(folder)).not.toBe(former);
    await app.stop();
  });

  test("beside a server that was stopped in the middle goes on at the next start, or without a server", async () => {
    const before = keyIn(folder);
    const app = await startTestApp({ dataDir: folder, keySettleMs: 60_000 });
    const token = app.operatorToken;
    expect((await app.request("POST", "/operator/master-key/rotate", { token })).status).toBe(202);
    const again = await app.request("POST", "/operator/master-key/rotate", { token });
    expect([again.status, again.body.rotating]).toEqual([202, true]);
    const during = keyIn(folder);
    expect(during).not.toBe(before);
    await app.stop({ keepData: true });
    const copy = join(root, `folder-${n++}`);
    cpSync(folder, copy, { recursive: true });
    expect((await rotate(copy)).code).toBe(0);
    expect(await seen(copy, shown)).toEqual(shown.before);

    const next = await startTestApp({ dataDir: folder, keySettleMs: 1 });
    const path = "/operator/master-key";
    while ((await next.request("GET", path, { token })).body.rotating) await Bun.sleep(5);
    await next.stop({ keepData: true });
    expect(keyIn(folder)).toBe(during);
    expect(await seen(folder, shown)).toEqual(shown.before);
    // The former key alone is not the database's, though values may be left that it opens.
    writeFileSync(join(folder, "master-key"), before, { mode: 0o600 });
    await expect(startTestApp({ dataDir: folder })).rejects.toThrow(
      "is not the one that the database was written with",
    );
  });

  test("takes a key that was put beside one which the server cannot replace, and says what is left to do", async () => {
    const place = join(root, `given-${n}`);
    const file = join(place, "key");
    mkdirSync(place);
    renameSync(join(folder, "master-key"), file);
    writeFileSync(`${file}.next`, "9".repeat(64), { mode: 0o600 });
    // Nothing can be renamed over a folder that is not empty.
    mkdirSync(join(`${file}.before`, "full"), { recursive: true });
    const env = { POSTRIDER_MASTER_KEY_FILE: file };
    const app = await startTestApp({ dataDir: folder, env, keySettleMs: 1 });
    const { code, out, err } = await rotate(folder, env);
    expect([code, err]).toEqual([0, expect.stringContaining(`Try: put there what is in ${file}.next`)]);
    expect(out).toContain(`the new one is in ${file}.next; `);
    expect(out).toContain(`Earlier backups still need the old key, which is in ${file}. `);
    // The only file with the key in use must not be removed.
    const again = await rotate(folder, env);
    expect([again.code, again.err]).toEqual([
      1,
      expect.stringContaining(`Try: put it into ${file}, then remove ${file}.next.`),
    ]);
    await app.stop({ keepData: true });
    // By hand, as it says.
    renameSync(`${file}.next`, join(folder, "master-key"));
    expect(await seen(folder, shown)).toEqual(shown.before);
  });

  test.each([
    ["goes, if the server may remove it", true],
    ["stays without a word, if not", false],
  ])(
    "leaves the former key as it was kept by hand: at the next start, the copy of the new one %s",
    async (_, isOurs) => {
      const place = join(root, `by-hand-${n}`);
      const file = join(place, "key");
      mkdirSync(place);
      renameSync(join(folder, "master-key"), file);
      const former = readFileSync(file, "utf8");
      expect((await rotate(folder, { POSTRIDER_MASTER_KEY_FILE: file })).code).toBe(0);
      expect(readFileSync(`${file}.before`, "utf8")).toBe(former);
      cpSync(file, `${file}.next`);
      const warned: string[] = [];
      const log = { ...silentLog, write: (_: string, event: string) => void warned.push(event) };
      // What is mounted cannot be removed, not even by root.
      const isMounted = !isOurs && Bun.spawnSync(["mount", "--bind", `${file}.next`, `${file}.next`]).success;
      try {
        (await prepare(folder, file, log))?.release();
      } finally {
        if (isMounted) Bun.spawnSync(["umount", `${file}.next`]);
      }
      expect(readFileSync(`${file}.before`, "utf8")).toBe(former);
      expect(existsSync(`${file}.next`)).toBe(isMounted);
      expect(warned).toEqual([]);
    },
  );

  test("once more, when the server can replace the key by then, puts the new one in place and makes no other", async () => {
    const file = join(root, `late-${n}`);
    renameSync(join(folder, "master-key"), file);
    const before = readFileSync(file, "utf8");
    mkdirSync(join(`${file}.before`, "full"), { recursive: true });
    const env = { POSTRIDER_MASTER_KEY_FILE: file };
    const app = await startTestApp({ dataDir: folder, env, keySettleMs: 1 });
    await rotate(folder, env);
    const made = readFileSync(`${file}.next`, "utf8");
    rmSync(`${file}.before`, { recursive: true });
    const { code, out, err } = await rotate(folder, env);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toContain(`the new one is in ${file}; 5 values resealed`);
    expect([file, `${file}.before`].map((name) => readFileSync(name, "utf8"))).toEqual([made, before]);
    expect(existsSync(`${file}.next`)).toBe(false);
    const audit = await app.request("GET", "/operator/audit", { token: app.operatorToken });
    expect(audit.text.match(/"master_key.rotated"/g)).toHaveLength(1);
    await app.stop();
  });

  test("refuses a copy of the key in use as the next one", async () => {
    const app = await startTestApp({ dataDir: folder, keySettleMs: 1 });
    const next = join(folder, "master-key.next");
    cpSync(join(folder, "master-key"), next);
    const { code, err } = await rotate(folder);
    expect([code, err]).toEqual([1, expect.stringContaining(`The key in ${next} is the one in use. Try: remove it.`)]);
    await app.stop();
  });

  test("needs a server on PostgreSQL, and a data directory", async () => {
    const url = "postgres://postrider@localhost/postrider";
    expect((await rotate(folder, { POSTRIDER_DATABASE_URL: url })).err).toContain("Try: start the servers");
    expect((await rotate(join(root, "nowhere"))).err).toContain("No server has run on");
    expect(existsSync(join(folder, "master-key.next"))).toBe(false);
  });
});
