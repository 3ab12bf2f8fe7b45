import { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, spyOn, test } from "bun:test";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Finding } from "../../src/cli/doctor/finding.ts";
import { runCommand } from "../../src/cli/run.ts";
import { openDataDir } from "../../src/data-dir.ts";
import { systemClock as clock } from "../../src/lib/clock.ts";
import { createVault } from "../../src/lib/vault.ts";
import { openStore } from "../../src/store/open.ts";
import type { MigrationProgress } from "../../src/store/sqlite/migration-steps.ts";
import { migrations } from "../../src/store/sqlite/migrations.ts";
import { writeMoveMark } from "../../src/store/sqlite/move-mark.ts";
import { databaseFile, openDatabase } from "../../src/store/sqlite/open.ts";
import { beginUpgrade, planSnapshot } from "../../src/store/sqlite/pre-migration.ts";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";
import { createSelfSigned } from "../support/certificates.ts";
import { startConnectProxy } from "../support/connect-proxy.ts";
import { overwritePages, pagesOf } from "../support/damaged-database.ts";
import { makeEarlierDatabase } from "../support/earlier-database.ts";
import { type NameServer, startNameServer } from "../support/name-server.ts";
import { describeWithOwnServer } from "../support/postgres.ts";
import { administer, type OwnServer, startDurableServer } from "../support/postgres-server.ts";
import { createScriptedIo } from "../support/scripted-io.ts";
import { testOnSqlite } from "../support/server-data.ts";
import { startTestApp } from "../support/test-app.ts";

let names: NameServer;
let folder: string;
beforeAll(async () => {
  names = await startNameServer((name) => (name === "example.com" ? ["192.0.2.1"] : "NXDOMAIN"));
});
afterAll(() => names.close());

async function doctor(dataDir: string, env: Record<string, string> = {}, ...flags: string[]) {
  const given = { POSTRIDER_DATA_DIR: dataDir, POSTRIDER_DNS_SERVERS: names.address, ...env };
  const { io, out } = createScriptedIo({ env: given });
  const code = await runCommand(["doctor", "--json", ...flags], io);
  const said = JSON.parse(out.join("\n")) as { ok: boolean; findings: Finding[] };
  return { code, ...said, of: (check: string) => said.findings.find((finding) => finding.check === check) };
}

/** Upgrades an earlier database as a start does, which is stopped after a certain step. */
function stopUpgrade(dataDir: string, isLast: (progress: MigrationProgress) => boolean): void {
  let isStopped = false;
  const client = openDatabase({
    dataDir,
    watch: {
      progress(progress) {
        isStopped ||= isLast(progress);
      },
      isStopped: () => isStopped,
      monotonicMs: () => 0,
    },
    beforeUpgrade(client, standing) {
      beginUpgrade(client, standing, { plan: planSnapshot(client, standing, migrations.length), isWanted: true });
    },
  });
  client.close(true);
}

describe("postrider doctor without a server", () => {
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "postrider-doctor-"));
    openDataDir(folder).release();
    await openSqliteStore({ dataDir: folder, clock, secondThread: false }).store.close();
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test("finds nothing to do where all is well, and changes nothing", async () => {
    const look = () => readdirSync(folder).map((name) => [name, statSync(join(folder, name)).mtimeMs]);
    const before = look();
    const { code, findings } = await doctor(folder);
    expect(findings.filter(({ state }) => state !== "ok")).toEqual([]);
    expect(findings.map(({ check }) => check)).toEqual([
      ...["server", "deliveries", "disk", "permissions", "key", "schema", "database", "log", "backups", "clock", "dns"],
      ...["proxy", "certificate", "mail"],
    ]);
    expect(code).toBe(0);
    expect(look()).toEqual(before);
  });

  test("says it to people, a line each", async () => {
    const { io, out } = createScriptedIo({ env: { POSTRIDER_DATA_DIR: folder, POSTRIDER_DNS_SERVERS: names.address } });
    expect(await runCommand(["doctor"], io)).toBe(0);
    expect(out.join("\n")).toMatch(/^ok {7}database {5}Every page of the database is whole/m);
  });

  test("finds what others can read, a newer schema and a name server that fails, each with what to do", async () => {
    chmodSync(join(folder, "master-key"), 0o644);
    const client = new Database(join(folder, databaseFile));
    client.run(`pragma user_version = ${migrations.length + 1}`);
    client.close();
    const { code, of } = await doctor(folder, { POSTRIDER_DNS_SERVERS: "127.0.0.1:1" });
    expect(code).toBe(1);
    expect(of("permissions")).toMatchObject({ state: "bad", remedy: expect.stringContaining("postrider rotate-key") });
    expect(of("schema")).toMatchObject({ state: "bad" });
    expect(of("dns")).toMatchObject({ state: "warning", message: expect.stringContaining("127.0.0.1:1") });
    // It is the doctor's to say, and not to mend.
    expect(statSync(join(folder, "master-key")).mode & 0o777).toBe(0o644);
  });

  test.each([
    ["before its first migration", ({ what }: MigrationProgress) => what === migrations[5]?.name],
    ["within a migration that moves rows", ({ what }: MigrationProgress) => what === "deliveries"],
    ["between two migrations", ({ what }: MigrationProgress) => what === migrations[6]?.name],
  ])("finds an upgrade that was stopped %s, until it has been continued", async (_, isLast) => {
    const dataDir = mkdtempSync(join(tmpdir(), "postrider-doctor-"));
    makeEarlierDatabase(dataDir, { schema: 5, events: 100 });
    stopUpgrade(dataDir, isLast);
    expect((await doctor(dataDir)).of("schema")).toMatchObject({
      state: "bad",
      message: expect.stringContaining(`an upgrade to schema ${migrations.length} has begun and not ended`),
      remedy: expect.stringContaining("start the server"),
    });
    openDatabase({ dataDir }).close();
    expect((await doctor(dataDir)).of("schema")).toMatchObject({ state: "ok" });
    rmSync(dataDir, { recursive: true });
  });

  test("finds that the master key is gone, or another one", async () => {
    const file = join(folder, "master-key");
    const vault = createVault(Buffer.from(readFileSync(file, "utf8").trim(), "hex"));
    await openSqliteStore({ dataDir: folder, clock, vault, secondThread: false }).store.close();
    expect((await doctor(folder)).of("key")).toMatchObject({ state: "ok", message: expect.stringContaining("opens") });
    const rows: [string | null, string][] = [
      ["0".repeat(64), "does not open with"],
      ["half of it", "is not 64 hexadecimal digits"],
      [null, "There is no "],
    ];
    for (const [content, words] of rows) {
      if (content === null) rmSync(file);
      else writeFileSync(file, content);
      const { code, of } = await doctor(folder);
      expect(code).toBe(1);
      expect(of("key")).toMatchObject({ state: "bad", message: expect.stringContaining(words) });
    }
  });

  test("finds a new master key that has yet to be put in place", async () => {
    const file = join(folder, "master-key");
    const vault = createVault(Buffer.from(readFileSync(file, "utf8").trim(), "hex"));
    await openSqliteStore({ dataDir: folder, clock, vault, secondThread: false }).store.close();
    renameSync(file, `${file}.next`);
    writeFileSync(file, "0".repeat(64), { mode: 0o600 });
    const { code, of } = await doctor(folder);
    expect(of("key")).toEqual({
      ...{ check: "key", state: "warning" },
      message: `The database is sealed with the key in ${file}.next, which is not in ${file} yet.`,
      remedy: expect.stringContaining(`put it into ${file}, then remove ${file}.next`),
    });
    expect(code).toBe(1);
  });

  test("finds data that was moved elsewhere, and does not count what was left", async () => {
    const client = new Database(join(folder, databaseFile));
    writeMoveMark(client, { move: "m", role: "left", place: "PostgreSQL at db/postrider" });
    client.close();
    const { code, of } = await doctor(folder);
    expect(code).toBe(1);
    expect(of("schema")).toMatchObject({ state: "bad", message: expect.stringContaining("was moved to PostgreSQL") });
    expect(of("deliveries")).toMatchObject({ state: "warning", message: expect.stringContaining("Not checked") });
  });

  test("finds a damaged page", async () => {
    const client = new Database(join(folder, databaseFile));
    client.run("create table filler (text)");
    client.run("insert into filler select hex(randomblob(500)) from json_each('[1,2,3,4,5,6,7,8,9]')");
    client.run("pragma wal_checkpoint(truncate)");
    client.close();
    overwritePages(folder, pagesOf(folder, "filler", "leaf").slice(-1));
    const { code, of } = await doctor(folder);
    expect(of("database")).toMatchObject({ state: "bad", remedy: expect.stringContaining("backup") });
    expect(code).toBe(1);
  });

  test("asks the delivery proxy for a way, and no name server", async () => {
    const proxy = await startConnectProxy(null);
    const asked = names.questions.length;
    const { of } = await doctor(folder, { POSTRIDER_DELIVERY_PROXY: proxy.url.replace("//", "//relay:hush@") });
    expect(of("proxy")).toMatchObject({ state: "bad", message: expect.stringContaining("it answered 407") });
    expect(JSON.stringify([of("proxy"), of("dns")])).not.toContain("hush");
    expect([of("dns")?.state, names.questions.length]).toEqual(["ok", asked]);
    expect(proxy.requests).toEqual(["CONNECT example.com:443 HTTP/1.1"]);
    await proxy.stop();
  });

  test("looks for Litestream where the log is left to it", async () => {
    const external = { POSTRIDER_CHECKPOINTS: "external" };
    expect((await doctor(folder, external)).of("litestream")).toMatchObject({ state: "bad" });
    mkdirSync(join(folder, `.${databaseFile}-litestream`));
    expect((await doctor(folder, external)).of("litestream")).toMatchObject({ state: "ok" });
  });

  test("warns of a public address without TLS", async () => {
    const { of } = await doctor(folder, { POSTRIDER_PUBLIC_URL: "http://relay.example.com" });
    expect(of("certificate")).toMatchObject({ state: "warning", message: expect.stringContaining("without TLS") });
  });

  test("names the worst of what others can read", async () => {
    for (const name of [databaseFile, "server.json", "operator-token", "master-key"]) {
      writeFileSync(join(folder, name), "", { flag: "a" });
      chmodSync(join(folder, name), 0o644);
    }
    chmodSync(folder, 0o755);
    expect((await doctor(folder)).of("permissions")).toEqual({
      check: "permissions",
      state: "bad",
      message: `${join(folder, "master-key")} is accessible to other users (mode 0644). The same goes for 4 more.`,
      remedy: "chmod 0600 it, and postrider rotate-key where others may have read it",
    });
  });

  test("names a master key elsewhere that others can read, and how to replace it", async () => {
    const elsewhere = join(folder, "key-elsewhere");
    renameSync(join(folder, "master-key"), elsewhere);
    chmodSync(elsewhere, 0o640);
    expect((await doctor(folder, { POSTRIDER_MASTER_KEY_FILE: elsewhere })).of("permissions")).toMatchObject({
      ...{ state: "bad", message: expect.stringContaining(elsewhere) },
      remedy: "chmod 0600 it, and postrider rotate-key where others may have read it",
    });
  });

  test("warns of a TLS key that everyone can read", async () => {
    const { cert, key } = createSelfSigned({ hosts: ["localhost"] });
    const env = { POSTRIDER_TLS_CERT: join(folder, "cert.pem"), POSTRIDER_TLS_KEY: join(folder, "key.pem") };
    writeFileSync(env.POSTRIDER_TLS_CERT, cert);
    writeFileSync(env.POSTRIDER_TLS_KEY, key);
    chmodSync(env.POSTRIDER_TLS_KEY, 0o644);
    expect((await doctor(folder, env)).of("permissions")).toMatchObject({
      ...{
        state: "warning",
        message: expect.stringContaining("POSTRIDER_TLS_KEY names a file that every user can read"),
      },
    });
  });

  test("finds settings that do not go together", async () => {
    const { code, findings } = await doctor(folder, { POSTRIDER_TLS_CERT: "/nonexistent.pem" });
    expect(code).toBe(1);
    expect(findings).toMatchObject([{ check: "settings", state: "bad", remedy: "set both, or neither" }]);
  });
});

describeWithOwnServer("postrider doctor on PostgreSQL", () => {
  let server: OwnServer;
  beforeAll(async () => {
    server = await startDurableServer();
    folder = mkdtempSync(join(tmpdir(), "postrider-doctor-"));
    openDataDir(folder).release();
  });
  afterAll(async () => {
    await server.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  test("tries the master key, and says why where there is none to try", async () => {
    const shared = { POSTRIDER_DATABASE_URL: server.url("postgres") };
    expect((await doctor(folder, shared)).of("key")).toMatchObject({
      state: "ok",
      message: expect.stringMatching(/no database yet/),
    });
    const file = join(folder, "master-key");
    const vault = createVault(Buffer.from(readFileSync(file, "utf8").trim(), "hex"));
    await (await openStore({ url: server.url("postgres"), clock, vault })).store.close();
    expect((await doctor(folder, shared)).of("key")).toMatchObject({
      state: "ok",
      message: expect.stringMatching(/opens what is sealed/),
    });

    writeFileSync(file, "0".repeat(64));
    const { code, of } = await doctor(folder, shared);
    expect(code).toBe(1);
    expect(of("key")).toMatchObject({ state: "bad", message: expect.stringMatching(/does not open with/) });

    await administer(
      server,
      "create table move_mark as select 1 as id, 'm' as move, 'left' as role, '/there' as place",
    );
    expect((await doctor(folder, shared)).of("schema")).toMatchObject({
      state: "bad",
      message: expect.stringMatching(/was moved to \/there/),
    });

    await server.stop("fast");
    const away = await doctor(folder, shared);
    expect(away.of("schema")).toMatchObject({ state: "bad", message: expect.stringMatching(/does not answer/) });
    for (const check of ["deliveries", "key", "log"])
      expect(away.of(check)).toMatchObject({
        state: "warning",
        message: expect.stringMatching(/Not checked: the database cannot be used/),
      });
  });
});

test("postrider doctor asks the server that runs, and reads its database beside it", async () => {
  const server = await startTestApp({ env: { POSTRIDER_PAUSED: "deliveries" } });
  const { code, of } = await doctor(server.dataDir);
  expect(of("server")).toMatchObject({ state: "ok", message: expect.stringContaining(server.url) });
  expect(of("database")).toMatchObject({ state: "ok" });
  expect(of("log")).toMatchObject({ message: expect.stringContaining("write-ahead log takes") });
  expect(of("deliveries")).toMatchObject({ state: "warning", remedy: expect.stringContaining("postrider resume") });
  expect(code).toBe(1);
  await server.stop();
});

testOnSqlite(
  "postrider doctor finds no fault with the clock of a server when another check takes its time",
  async () => {
    const server = await startTestApp({ env: {} });
    let passedMs = 0;
    const now = spyOn(clock, "now").mockImplementation(() => Date.now() + passedMs);
    const s3 = Bun.serve({
      port: 0,
      async fetch() {
        // By then doctor has its answer, for which it asked when it asked for this one.
        await server.request("GET", "/operator/status", { token: server.operatorToken });
        passedMs = 60_000;
        return new Response(null, { status: 403 });
      },
    });
    const place = { POSTRIDER_BACKUP_URL: "s3://backups/x", AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${s3.port}` };
    const { of } = await doctor(server.dataDir, { ...place, AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "b" });
    expect(passedMs).toBeGreaterThan(0);
    expect(of("clock")).toMatchObject({ state: "ok" });
    now.mockRestore();
    await s3.stop(true);
    await server.stop();
  },
);

test("postrider doctor finds a server that does not accept events, and one that was killed", async () => {
  const server = await startTestApp({ env: { POSTRIDER_MIN_FREE_DISK: "900000GiB" } });
  const { code, of } = await doctor(server.dataDir);
  expect(code).toBe(1);
  expect(of("server")).toMatchObject({ state: "bad", message: expect.stringMatching(/not accept events: The disk/) });
  await server.stop();

  const dataDir = mkdtempSync(join(tmpdir(), "postrider-doctor-"));
  openDataDir(dataDir).release();
  const ended = Bun.spawnSync(["true"]).pid;
  writeFileSync(join(dataDir, "server.json"), JSON.stringify({ pid: ended, url: "http://127.0.0.1:1" }), {
    mode: 0o600,
  });
  expect((await doctor(dataDir)).of("server")).toMatchObject({
    state: "bad",
    message: expect.stringContaining(`(process ${ended}) ended without shutting down`),
    remedy: expect.stringContaining("start it"),
  });
  rmSync(dataDir, { recursive: true });
});

test.each([
  ["does not exist here", () => Bun.spawnSync(["true"]).pid],
  ["is another one here", () => process.pid],
])("postrider doctor takes a server that holds the folder for alive, although its process %s", async (_, pid) => {
  const dataDir = mkdtempSync(join(tmpdir(), "postrider-doctor-"));
  const held = openDataDir(dataDir);
  held.announce({ pid: pid(), url: "http://127.0.0.1:1" }, () => {});
  expect((await doctor(dataDir)).of("server")).toMatchObject({
    state: "warning",
    message: expect.stringMatching(
      /^A server is using .* \(process \d+, http:\/\/127\.0\.0\.1:1\), but does not answer here/,
    ),
    remedy: expect.stringContaining("where the server runs"),
  });
  held.release();
  rmSync(dataDir, { recursive: true });
});

test("postrider doctor makes and judges nothing where there is nothing", async () => {
  const { code, of } = await doctor("/nonexistent/postrider");
  expect([code, of("disk")?.state]).toEqual([1, "bad"]);
  expect(of("permissions")?.message).toStartWith("Not checked");
});

test("postrider doctor says so where a file is in the place of the data directory, or of a folder above it", async () => {
  for (const path of [import.meta.path, join(import.meta.path, "data")]) {
    const { code, findings } = await doctor(path);
    expect([code, findings]).toEqual([
      1,
      [
        {
          check: "disk",
          state: "bad",
          message: `${path} is not a folder.`,
          remedy: expect.stringContaining("--data-dir"),
        },
      ],
    ]);
  }
});
