import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startSuccessor } from "../../src/cli/successor.ts";

/** Nobody stops the server. */
const { signal: ending } = new AbortController();

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
    const started = startSuccessor({ program: [file], args: [], env: process.env, ending, onDeath() {} });
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
      ending,
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

describe("the stop of a server", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "postrider-successor-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  async function start(source: string) {
    const file = join(folder, "successor.js");
    await Bun.write(file, source);
    const stop = new AbortController();
    const died: number[] = [];
    const started = startSuccessor({
      ...{ program: [process.execPath, file], args: [folder], env: process.env, ending: stop.signal },
      onDeath: (pid) => died.push(pid),
    });
    return { started, stop, died };
  }

  test("ends a successor that is not ready yet", async () => {
    const { started, stop } = await start("setInterval(() => {}, 1000)");
    stop.abort();
    await expect(started).rejects.toMatchObject({ code: "not_restarted", message: expect.stringMatching(/stopping/) });
  });

  test("ends one that has nothing yet, and no other one is started", async () => {
    const { started, stop, died } = await start('process.send({ kind: "ready", version: "1" })');
    const successor = await started;
    stop.abort();
    await successor.takePort();
    expect([await successor.enter(), died]).toEqual([false, []]);
  });

  test("is told to one that has the port, which enters and ends", async () => {
    const { started, stop } = await start(`
      import fs from "node:fs";
      const heard = [];
      process.send({ kind: "ready", version: "1" });
      process.on("message", ({ kind }) => {
        heard.push(kind);
        if (kind === "leaving") process.send({ kind: "steered" });
        if (kind !== "released") return;
        const [folder] = process.argv.slice(2);
        fs.writeFileSync(folder + "/written", heard.join(" "));
        fs.renameSync(folder + "/written", folder + "/heard");
        process.exit(0);
      });`);
    const successor = await started;
    await successor.takePort();
    stop.abort();
    expect(await successor.enter()).toBe(true);
    const heard = join(folder, "heard");
    while (!existsSync(heard)) await Bun.sleep(5);
    expect(readFileSync(heard, "utf8")).toBe("leaving stop leaving released");
  });
});
