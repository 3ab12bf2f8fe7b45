import { afterEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApp } from "../src/app.ts";
import { loadConfig } from "../src/config.ts";
import { StartupError } from "../src/domain/errors.ts";
import type { Home } from "../src/home.ts";
import { systemClock } from "../src/lib/clock.ts";
import { silentLog } from "../src/lib/log.ts";
import { databaseFile } from "../src/store/sqlite/open.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "postrider-app-"));
  folders.push(folder);
  return folder;
}

/** A home that keeps nothing, and writes down what it is told. */
function createNotedHome() {
  const told: string[] = [];
  const home: Home = {
    announce: ({ url, stopping = false }) =>
      void told.push(`${stopping ? "stopping" : "serving"} port ${new URL(url).port}`),
    lastNode: () => null,
    resumed() {},
    failsPending: () => false,
    pendingFailed() {},
    readBackupNotes: () => null,
    noteBackups() {},
    noteNode() {},
    rotateOperatorToken: () => "the second token",
    masterKeyFiles: {
      ...{ current: "master-key", next: "master-key.next" },
      readCurrent: () => null,
      readNext: () => null,
      makeNext: () => new Uint8Array(32).fill(8),
      promote() {},
    },
    shareSecrets() {},
    movedTo: () => null,
    release: () => void told.push("released"),
  };
  return { home, told };
}

const runOwn = async () => ({ code: 1, out: "", err: "" });
const secrets = {
  masterKey: new Uint8Array(32).fill(7),
  sessionSecret: "of sessions",
  operatorToken: "the first token",
};

test("a server whose secrets and home are given has no data directory: of its own it makes the store", async () => {
  const storeFolder = newFolder();
  const dataDir = join(storeFolder, "data");
  const { home, told } = createNotedHome();
  const config = loadConfig(
    { POSTRIDER_PORT: "0", POSTRIDER_DATA_DIR: dataDir, POSTRIDER_MIN_FREE_DISK: "1" },
    new Map(),
  );
  const app = await createApp(config, { clock: systemClock, log: silentLog, secrets, storeFolder, home, runOwn });
  const { url } = await app.start();
  const call = (token: string, method: string, path: string) =>
    fetch(`${url}${path}`, { method, headers: { Authorization: `Bearer ${token}` } });
  const statusOf = async (token: string) => (await call(token, "GET", "/operator/tenants")).status;

  expect((await fetch(`${url}/v1/tenants`, { method: "POST" })).status).toBe(201);
  expect(await statusOf("the first token")).toBe(200);
  expect((await call("the first token", "POST", "/operator/token/rotate")).status).toBe(200);
  expect([await statusOf("the first token"), await statusOf("the second token")]).toEqual([401, 200]);
  expect(await (await fetch(`${url}/metrics`)).text()).toMatch(/^postrider_\w*database_bytes [1-9]/m);
  await app.stop();

  const { port } = new URL(url);
  expect(told).toEqual([`serving port ${port}`, `stopping port ${port}`, "released"]);
  expect(readdirSync(storeFolder).filter((name) => !name.startsWith(databaseFile))).toEqual([]);
  expect(existsSync(dataDir)).toBe(false);
});

test("a restored server lets what was pending fail before it listens and delivers, if that was asked", async () => {
  const storeFolder = newFolder();
  const { home, told } = createNotedHome();
  const asked: Home = { ...home, failsPending: () => true, pendingFailed: () => void told.push("pending failed") };
  const config = loadConfig({ POSTRIDER_PORT: "0", POSTRIDER_MIN_FREE_DISK: "1" }, new Map());
  const begin = () =>
    createApp(config, {
      ...{ clock: systemClock, log: silentLog, secrets, storeFolder, home: asked, runOwn },
      wrapStore: (store) => ({
        ...store,
        failPending: (limit) => {
          told.push("failing");
          return store.failPending(limit);
        },
        discover: (range) => {
          told.push("discovering");
          return store.discover(range);
        },
      }),
    });
  const stopped = await begin();
  expect(await stopped.endRestore(AbortSignal.abort())).toBe(false);
  await stopped.stop();
  expect(told.splice(0)).toEqual(["released"]);

  const app = await begin();
  await app.start();
  await app.stop();
  expect(told.slice(0, 4)).toEqual([
    "failing",
    "pending failed",
    expect.stringMatching(/^serving port/),
    "discovering",
  ]);
});

test("a server that cannot be built leaves its home", async () => {
  const { home, told } = createNotedHome();
  const storeFolder = join(newFolder(), "missing");
  const config = loadConfig({ POSTRIDER_PORT: "0" }, new Map());
  const app = createApp(config, { clock: systemClock, log: silentLog, secrets, storeFolder, home, runOwn });
  await expect(app).rejects.toThrow(StartupError);
  expect(told).toEqual(["released"]);
});
