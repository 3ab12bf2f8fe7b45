import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startSuccessor } from "../../src/cli/successor.ts";

/** What a successor says and hears; the first one closes its end of the channel, as the kernel does for one that is killed. */
const program = `
  const [folder] = process.argv.slice(2);
  const isFirst = (await import("node:fs")).mkdirSync(folder + "/started", { recursive: true }) !== undefined;
  process.send({ kind: "ready", version: "1" });
  if (isFirst) {
    process.disconnect();
    await Bun.sleep(300);
    process.exit(9);
  }
  process.on("message", ({ kind }) => {
    if (kind === "leaving") process.send({ kind: "steered" });
    else process.exit(0);
  });
`;

test.each([
  ["is not there", null, "ENOENT"],
  ["may not be run", 0o600, "EACCES"],
])("a program that %s is a refusal, and the one that runs goes on", async (_, mode, code) => {
  const folder = mkdtempSync(join(tmpdir(), "postrider-successor-"));
  try {
    const file = join(folder, "postrider");
    if (mode !== null) writeFileSync(file, "#!/bin/sh\n", { mode });
    const started = startSuccessor({ program: [file], args: [], env: process.env, onDeath() {} });
    await expect(started).rejects.toMatchObject({
      code: "not_restarted",
      message: expect.stringContaining(`this one keeps running: ${file} cannot be started (${code}). Try:`),
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("one that dies while it is spoken to is replaced, and everything is the other one's", async () => {
  const folder = mkdtempSync(join(tmpdir(), "postrider-successor-"));
  try {
    const file = join(folder, "successor.js");
    await Bun.write(file, program);
    const died: number[] = [];
    const successor = await startSuccessor({
      program: [process.execPath, file],
      args: [folder],
      env: process.env,
      onDeath: (pid) => died.push(pid),
    });
    // The runtime hears that the channel has closed before it hears of the death.
    await Bun.sleep(100);
    expect(await successor.enter()).toBe(true);
    expect(died).toEqual([successor.pid]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
