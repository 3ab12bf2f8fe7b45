import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "../../../src/cli/run.ts";
import { createDiskFullFigures, createDiskFullRun, type Disk } from "../../../src/cli/selftest/disk-full/run.ts";
import { type Account, openAccount } from "../../../src/cli/selftest/rig/account.ts";
import { createFaults } from "../../../src/cli/selftest/rig/ledger.ts";
import { startServer } from "../../../src/cli/selftest/rig/server.ts";
import { startSwitchboard } from "../../../src/cli/selftest/rig/switchboard.ts";
import { systemClock as clock } from "../../../src/lib/clock.ts";
import { createRandom, fork } from "../../../src/lib/random.ts";
import { examineStore } from "../../../src/store/open.ts";
import { createScriptedIo } from "../../support/scripted-io.ts";
import { mountSmallDisk } from "../../support/small-disk.ts";
import { startTestApp } from "../../support/test-app.ts";
import { program } from "./program.ts";

/** A disk of 12 MB, as SQLite sees it: it is SQLite itself that says when it is full. */
const maxPageCount = 3_000;
const webhookConcurrency = 8;

/** Full of one account's events; room comes by deleting it. */
function createTenantDisk(receiverUrl: string, operatorToken: string): Disk {
  let current: Account | null = null;
  return {
    async fillUp(api) {
      current = await openAccount(api, { hooks: [], receiverUrl, operatorToken });
      return current;
    },
    async makeRoom(api) {
      await api.send("DELETE", "/v1/tenants", 204, { token: current?.session ?? "" });
    },
  };
}

test("a folder that is not there is refused with what to do, and not made", async () => {
  const { io, err } = createScriptedIo();
  const none = join(import.meta.dir, "none");
  expect(await runCommand(["selftest", "disk-full", "--dir", none], io)).toBe(1);
  expect(err).toEqual([expect.stringMatching(/none cannot be filled \(ENOENT.*\)\. Try: mkdir \/mnt\/small && mount/)]);
  expect(existsSync(none)).toBeFalse();
});

test.concurrent("a disk that is full twenty times: 503, nothing lost, nothing twice, and it goes on by itself", async () => {
  const cycles = 20;
  const random = createRandom(9);
  const faults = createFaults();
  const figures = createDiskFullFigures();
  const switchboard = startSwitchboard(clock, fork(random), faults);
  const env = {
    POSTRIDER_RETRY_SCHEDULE: "50ms,100ms,1s,2s",
    POSTRIDER_WEBHOOK_CONCURRENCY: String(webhookConcurrency),
  };
  const server = await startTestApp({ maxPageCount, env });
  const { operatorToken } = server;
  const run = createDiskFullRun({
    cycles,
    random,
    clock,
    port: Number(new URL(server.url).port),
    operatorToken,
    webhookConcurrency,
    disk: createTenantDisk(switchboard.url, operatorToken),
    switchboard,
    faults,
    figures,
  });
  try {
    await run();
  } finally {
    await server.stop({ keepData: true });
    switchboard.stop();
  }
  expect(faults.told).toEqual([]);
  expect((await examineStore(server.dataDir)).faults).toEqual([]);
  rmSync(server.dataDir, { recursive: true });
  // In every cycle the disk was met, outcomes had to wait for room, and it went on.
  expect([figures.cycles, figures.resumedMs.length, figures.duplicates]).toEqual([cycles, cycles, 0]);
  expect(figures.refusals).toBeGreaterThan(cycles);
  expect(figures.held).toBeGreaterThan(cycles);
}, 300_000);

const smallDisk = mountSmallDisk(64);
afterAll(() => smallDisk?.unmount());

const fullDisk = mountSmallDisk(1);
afterAll(() => fullDisk?.unmount());

test.skipIf(fullDisk === null).concurrent("what a server says is heard although its log has no room", async () => {
  const dataDir = join(fullDisk?.folder ?? "", "data");
  mkdirSync(dataDir);
  fullDisk?.fill();
  const faults = createFaults();
  const line = '{"event":"server.started","url":"http://localhost:4711"}';
  const program = ["sh", "-c", `echo '${line}'; exec sleep 60`];
  const server = startServer({ dataDir, settings: {}, clock, faults, program });
  expect(await server.ready).toMatchObject({ port: 4711 });
  await server.kill();
  expect(faults.told).toEqual([]);
});

test.skipIf(smallDisk === null).concurrent(
  "a file system of 64 MB that is full, with restarts on it: the same (needs to be root, to mount one)",
  async () => {
    const words = ["selftest", "disk-full", "--dir", smallDisk?.folder ?? "", "--cycles", "6", "--json"];
    const child = Bun.spawn([...program, ...words], { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
    const { held, command, figures, faults } = JSON.parse(await new Response(child.stdout).text());
    expect({ command, faults: faults.told }).toEqual({ command, faults: [] });
    expect([held, await child.exited, figures.cycles, figures.restarts]).toEqual([true, 0, 6, 2]);
    expect(figures.held).toBeGreaterThan(0);
  },
  300_000,
);
