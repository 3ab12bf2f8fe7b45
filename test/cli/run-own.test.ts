import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunOwn } from "../../src/cli/run-own.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const dataDir = mkdtempSync(join(tmpdir(), "postrider-run-own-"));
afterAll(() => rmSync(dataDir, { recursive: true }));

/** Reports to the test, and leaves in the data directory what a backup would have removed in the end. */
const deaf = `
  const { mkdirSync, writeFileSync } = require("node:fs");
  const { POSTRIDER_DATA_DIR: folder, REPORT: report } = process.env;
  mkdirSync(folder + "/postrider-verify-" + process.pid + "-abc");
  writeFileSync(folder + "/postrider-verify-" + process.pid + "-abc/postrider.db", "");
  writeFileSync(folder + "/.postrider-upload.unfinished-" + process.pid, "");
  process.on("SIGTERM", () => fetch(report, { method: "POST", body: "heard" }));
  setInterval(() => {}, 60_000);
  fetch(report, { method: "POST", body: "ready" });
`;

test("a command that does not end when it is asked to is ended after 5 seconds, and what it leaves is removed", async () => {
  const [ready, heard] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  using server = Bun.serve({
    port: 0,
    async fetch(request) {
      ((await request.text()) === "ready" ? ready : heard).resolve();
      return new Response();
    },
  });
  // Another process is still at work on it.
  writeFileSync(join(dataDir, ".postrider-upload.unfinished-1"), "");
  const clock = createFakeClock();
  const stopped = new AbortController();
  const program = [process.execPath, "-e", deaf];
  const run = createRunOwn({ ...process.env, REPORT: server.url.href }, dataDir, { program, clock });
  const ended = run([], stopped.signal);
  await ready.promise;
  stopped.abort();
  await heard.promise;
  clock.advance(4_999);
  expect(readdirSync(dataDir)).toHaveLength(3);
  clock.advance(1);
  expect(await ended).toEqual({ code: 137, out: "", err: "" });
  expect(readdirSync(dataDir)).toEqual([".postrider-upload.unfinished-1"]);
  expect(clock.timers).toBe(0);
});
