import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { removeLeftBy } from "../../src/backup/leftovers.ts";
import { createRunOwn } from "../../src/cli/run-own.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const dataDir = mkdtempSync(join(tmpdir(), "postrider-run-own-"));
const target = mkdtempSync(join(tmpdir(), "postrider-run-own-target-"));
afterAll(() => {
  for (const folder of [dataDir, target]) rmSync(folder, { recursive: true });
});

/** Reports to the test, and leaves in both folders what a backup would have removed in the end. */
const deaf = `
  const { mkdirSync, writeFileSync } = require("node:fs");
  const { POSTRIDER_DATA_DIR: folder, REPORT, TARGET: target } = process.env;
  const report = (body) => fetch(REPORT, { method: "POST", body }).catch(() => {});
  mkdirSync(folder + "/postrider-verify-" + process.pid + "-abc");
  writeFileSync(folder + "/postrider-verify-" + process.pid + "-abc/postrider.db", "");
  writeFileSync(folder + "/.postrider-upload.unfinished-" + process.pid, "");
  writeFileSync(target + "/.postrider-new.tar.zst.unfinished-" + process.pid, "");
  process.on("SIGTERM", () => report("heard"));
  setInterval(() => {}, 60_000);
  report("ready");
`;

/** Such a command, once it has been asked to end. */
async function askToEnd(removeLeft?: typeof removeLeftBy) {
  const [ready, heard] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await using server = Bun.serve({
    port: 0,
    async fetch(request) {
      ((await request.text()) === "ready" ? ready : heard).resolve();
      return new Response();
    },
  });
  const clock = createFakeClock();
  const stopped = new AbortController();
  const program = [process.execPath, "-e", deaf];
  const env = { ...process.env, REPORT: server.url.href, TARGET: target };
  const run = createRunOwn(env, dataDir, { program, clock, ...(removeLeft && { removeLeft }) });
  const ended = run([], stopped.signal, target);
  await ready.promise;
  stopped.abort();
  await heard.promise;
  return { clock, ended };
}

test("a command that does not end when it is asked to is ended after 5 seconds, and what it leaves is removed", async () => {
  // Another process is still at work on these.
  for (const folder of [dataDir, target]) writeFileSync(join(folder, ".postrider-upload.unfinished-1"), "");
  const { clock, ended } = await askToEnd();
  clock.advance(4_999);
  expect([readdirSync(dataDir).length, readdirSync(target).length]).toEqual([3, 2]);
  clock.advance(1);
  expect(await ended).toEqual({ code: 137, out: "", err: "" });
  for (const folder of [dataDir, target]) expect(readdirSync(folder)).toEqual([".postrider-upload.unfinished-1"]);
  expect(clock.timers).toBe(0);
});

test("a folder that does not answer is waited for for a second", async () => {
  const asked = Promise.withResolvers<void>();
  const { clock, ended } = await askToEnd(async (_pid, folder) => {
    if (folder !== target) return;
    asked.resolve();
    await new Promise(() => {});
  });
  clock.advance(5_000);
  await asked.promise;
  expect(clock.nextTimerMs).toBe(1_000);
  clock.advance(1_000);
  expect(await ended).toMatchObject({ code: 137 });
});

test("a folder that is gone is no failure", async () => {
  const { clock, ended } = await askToEnd(async (_pid, folder) => {
    if (folder === target) throw new Error("ENOENT");
  });
  clock.advance(5_000);
  expect(await ended).toMatchObject({ code: 137 });
  expect(clock.timers).toBe(0);
});
