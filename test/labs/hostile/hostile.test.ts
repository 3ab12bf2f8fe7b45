import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { type Allowance, barLine, judge, tallyLines } from "./report.ts";
import { runHostile } from "./run.ts";

/** `bun run hostile` does the same more often, and says on which machine. */
const times = 20;
/**
 * The figures, 20 MB and half a second, are the command's. Where processors are busy with other things garbage is collected
 * late, and 51 MB were seen; before the parser got what was read in pieces it was 140 MB. And what has its own time of 10 s
 * to end has ended before the next 10 s are over.
 */
const busyMachine: Allowance = { growthBytes: 80e6, lateMs: 10_000 };

// The memory of the server is read from /proc.
test.skipIf(process.platform !== "linux")(
  "beside hostile receivers the server gives each its verdict in time, serves a healthy webhook and keeps its memory",
  async () => {
    const result = await runHostile({
      times,
      maxLateMs: busyMachine.lateMs,
      warmupTurns: 2,
      source: true,
      parent: tmpdir(),
    });
    rmSync(result.dataDir, { recursive: true, force: true });
    const missed = judge(result, times, busyMachine).filter(({ passed }) => !passed);
    expect(missed.length === 0 ? "" : `${missed.map(barLine).join("\n")}\n${tallyLines(result)}`).toBe("");
    expect(result.webhooks).toBe(512);
    expect(result.tallies.length).toBeGreaterThan(100);
  },
  120_000,
);
