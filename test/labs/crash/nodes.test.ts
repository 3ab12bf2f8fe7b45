import { expect, test } from "bun:test";
import { join } from "node:path";
import { hasOwnServer } from "../../support/postgres-server.ts";

const cycles = 10;
/** How soon others take over is held to seconds by the command itself, where nothing else runs. */
const graceSeconds = 60;

test.skipIf(!hasOwnServer)(
  `${cycles} mishaps of four nodes and their database: nothing is lost, and the others take over`,
  async () => {
    const lab = join(import.meta.dir, "nodes.ts");
    const words = ["--cycles", String(cycles), "--grace", String(graceSeconds), "--json"];
    const child = Bun.spawn([process.execPath, lab, ...words], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    const [report, complaint] = await Promise.all(
      [child.stdout, child.stderr].map((said) => new Response(said).text()),
    );
    if (!report) throw new Error(`The lab gave no report, and said: ${complaint?.slice(-1_000)}`);
    const { held, command, figures, faults } = JSON.parse(report);
    expect({ command, faults: faults.told }).toEqual({ command, faults: [] });
    expect([held, await child.exited]).toEqual([true, 0]);

    // The mishaps met what they were meant to meet; otherwise the run has proved nothing.
    const met = {
      events: figures.acknowledged,
      kills: figures.kills,
      "takeovers that were timed": figures.takeoverMs.count,
      "events of a quota": figures.quotaAccepted,
      "replays that ended": figures.replays.completed,
      "webhooks that want nothing": figures.failed,
    };
    expect(Object.entries(met).filter(([, count]) => !(count > 0))).toEqual([]);
    expect(figures.cycles).toBe(cycles);
  },
  600_000,
);
