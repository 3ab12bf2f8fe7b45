import { expect, test } from "bun:test";
import { program } from "./program.ts";

const cycles = 50;

test(`${cycles} kills: every acknowledged event is stored and delivered, and nothing else is`, async () => {
  const child = Bun.spawn([...program, "selftest", "crash", "--cycles", String(cycles), "--json"], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  const { held, command, figures, faults } = JSON.parse(await new Response(child.stdout).text());
  expect({ command, faults: faults.told }).toEqual({ command, faults: [] });
  expect([held, await child.exited]).toEqual([true, 0]);

  // The kills met what they were meant to meet; otherwise the run has proved nothing.
  const met = {
    events: figures.acknowledged,
    "requests without an answer": figures.unanswered,
    "attempts under way": figures.unrecordedAttempts,
    "replays under way": figures.replays.interrupted,
    "replays that were being queued": figures.replays.interruptedQueueing,
    "webhooks that want nothing": figures.failed,
    "idempotency keys of before": figures.repeatedAlike,
    "servers that were starting": figures.killedStarting,
  };
  expect(Object.entries(met).filter(([, count]) => !(count > 0))).toEqual([]);
  expect(figures.cycles).toBe(cycles);
}, 300_000);
