import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createNarrator } from "../../src/cli/demo/narrator.ts";
import { createDemoNodes, type DemoNode } from "../../src/cli/demo/nodes.ts";
import { nodesStatusFor, tellNodesStory } from "../../src/cli/demo/nodes-story.ts";
import { startDemoReceiver } from "../../src/cli/demo/receiver.ts";
import { runCommand } from "../../src/cli/run.ts";
import { systemClock as clock } from "../../src/lib/clock.ts";
import { retire } from "../../src/store/postgres/nodes.ts";
import { createPool } from "../../src/store/postgres/pool.ts";
import { describeWithOwnServer } from "../support/postgres.ts";
import { startDurableServer } from "../support/postgres-server.ts";
import { createScriptedIo } from "../support/scripted-io.ts";

describe("postrider demo", () => {
  const nobodys = "postgres://nobody:secret@127.0.0.1:1/none";

  test.each([
    [
      ["--nodes", "3"],
      2,
      /Several servers need a PostgreSQL database .* Try: postrider demo --nodes 3 --database-url /,
    ],
    [["--nodes", "1", "--database-url", nobodys], 2, /--nodes must be a whole number from 2 to 8, not "1"\. Try: /],
    [["--nodes", "many", "--database-url", nobodys], 2, /not "many"\. Try: --nodes 3$/],
    [["--database-url", "mysql://host/db"], 2, /--database-url must be postgres:\/\/.*\. Try: --database-url /],
    [
      ["--database-url", nobodys],
      1,
      /The database at 127\.0\.0\.1:1\/none .*nothing listens there\. Try: .*--database-url/,
    ],
  ])("%j is refused in one line, which says what to do", async (flags, code, words) => {
    const { io, out, err } = createScriptedIo();
    expect(await runCommand(["demo", ...flags], io)).toBe(code);
    expect([out, err.length]).toEqual([[], 1]);
    expect(err[0]).toMatch(words);
    expect(err[0]).not.toContain("secret");
  });

  test("says so where no temporary folder can be made", async () => {
    const given = process.env.TMPDIR;
    process.env.TMPDIR = join(import.meta.path, "none");
    try {
      const { io, out, err } = createScriptedIo();
      expect([await runCommand(["demo"], io), out]).toEqual([1, []]);
      expect(err).toEqual([
        expect.stringMatching(/^postrider: No folder can be made in .*none \(.*\)\. Try: TMPDIR with/),
      ]);
    } finally {
      if (given === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = given;
    }
  });
});

test("a demo tells its story and nothing else: the refusals that are part of it are no news", async () => {
  const { io, out, err } = createScriptedIo();
  expect(await runCommand(["demo"], io)).toBe(0);
  expect(out.join("\n")).toContain("attempts 503, then 503, then 200");
  expect(err).toEqual([]);
});

describe("a demo that is interrupted", () => {
  test("says so, and claims nothing of a check", async () => {
    const { io, out } = createScriptedIo();
    const narrator = createNarrator(io, clock);
    const cut = Promise.withResolvers<string>();
    const step = narrator.step("Delivered", () => cut.promise);
    narrator.interrupt();
    cut.reject(new Error("connect ECONNREFUSED"));
    await expect(step).rejects.toThrow("ECONNREFUSED");
    narrator.end(false, "A check failed: connect ECONNREFUSED");
    expect(out).toEqual(["\nInterrupted."]);
  });

  test("is not interrupted any more once it has told its end", () => {
    const { io, out } = createScriptedIo();
    const narrator = createNarrator(io, clock);
    narrator.end(true, "Every check passed.");
    narrator.interrupt();
    expect(out).toEqual(["\n✓ Every check passed."]);
  });

  test("ends with 130", async () => {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "../../src/main.ts"), "demo"], {
      env: { PATH: process.env.PATH ?? "" },
      stdout: "pipe",
      stderr: "pipe",
    });
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) {
      text += decoder.decode(chunk, { stream: true });
      if (text.includes("Accepted")) child.kill("SIGINT");
    }
    expect(await child.exited).toBe(130);
    expect(text).toMatch(/\nInterrupted\.\n$/);
    expect(text).not.toContain("✗");
  });
});

describeWithOwnServer("the story of several servers", () => {
  test("that is interrupted gives the database back, and claims nothing of a check", async () => {
    const server = await startDurableServer();
    const { io, out, progress, interrupt, when } = createScriptedIo();
    try {
      const demo = runCommand(["demo", "--nodes", "2", "--database-url", server.url("postgres")], io);
      await when(progress, (line) => line.includes("Waiting for the lease of relay-2"));
      interrupt();
      expect(await demo).toBe(130);
      expect(out.slice(-2)).toEqual(["\nInterrupted.", expect.stringContaining("The database is empty again.")]);
      expect(out.join("\n")).not.toContain("✗");
      expect(progress.at(-1)).toBe("");
    } finally {
      await server.remove();
    }
  });

  test("tells of events that all arrive, those that a killed one was delivering, too", async () => {
    const server = await startDurableServer();
    const url = server.url("postgres");
    const folder = mkdtempSync(join(tmpdir(), "postrider-demo-test-"));
    const nodes = createDemoNodes({ folder, databaseUrl: url, masterKey: randomBytes(32), clock });
    const receiver = startDemoReceiver(nodesStatusFor);
    const { io, out } = createScriptedIo();
    try {
      const started = await Promise.all(["one", "two", "three"].map(nodes.start));
      const sum = await tellNodesStory({
        nodes: started.map((node) => ({ ...node, kill: () => killAndBury(node, url) })),
        receiver,
        narrator: createNarrator(io, clock),
        clock,
      });
      expect(sum).toBe("13 events delivered in 16 attempts by 3 servers, one of them killed; 48 signatures verified");
      expect(out.join("\n")).toContain("kill -9 two, with 3 deliveries under way");
      await nodes.stop();
      expect(nodes.faults.told).toEqual([]);
    } finally {
      await nodes.kill();
      await receiver.stop();
      await server.remove();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

/** Nobody waits for its lease to run out: what it owned is given back at once. */
async function killAndBury(node: DemoNode, url: string): Promise<void> {
  await node.kill();
  const pool = createPool({ url, size: 1, clock });
  const [row] = await pool.read<{ incarnation: number }>("select incarnation from node where name = $1", [node.name]);
  await retire(pool, row?.incarnation ?? 0);
  await pool.close();
}
