import { expect, test } from "bun:test";
import { join } from "node:path";
import { hasOwnServer } from "../../support/postgres-server.ts";

const cycles = 3;

test.skipIf(!hasOwnServer)(
  `${cycles} cycles of kills and pauses of four nodes on one database: nothing is lost, and the others take over`,
  async () => {
    const lab = join(import.meta.dir, "nodes.ts");
    const child = Bun.spawn([process.execPath, lab, "--cycles", String(cycles), "--spare", "--json"], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
    });
    const { held, command, figures, faults } = JSON.parse(await new Response(child.stdout).text());
    expect({ command, faults: faults.told }).toEqual({ command, faults: [] });
    expect([held, await child.exited]).toEqual([true, 0]);

    // The mishaps met what they were meant to meet; otherwise the run has proved nothing.
    expect(figures.acknowledged).toBeGreaterThan(0);
    expect(figures.cycles).toBe(cycles);
  },
  300_000,
);
