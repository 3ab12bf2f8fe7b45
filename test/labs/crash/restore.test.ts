import { expect, test } from "bun:test";
import { program } from "./program.ts";

const cycles = 2;

test(`${cycles} backups of a busy server: what was acknowledged before is restored, and ends as it must`, async () => {
  // The first server is killed while it is backed up, the second one after it.
  const words = ["selftest", "restore", "--cycles", String(cycles), "--seed", "7", "--json"];
  const child = Bun.spawn([...program, ...words], { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
  const { held, figures, faults } = JSON.parse(await new Response(child.stdout).text());
  expect(faults.told).toEqual([]);
  expect([held, await child.exited]).toEqual([true, 0]);
  const met = {
    events: figures.owed,
    "deliveries that were pending": figures.pending,
    "servers that were being backed up": figures.killedDuring,
    "servers that had been backed up": cycles - figures.killedDuring,
  };
  expect(Object.entries(met).filter(([, count]) => !(count > 0))).toEqual([]);
}, 300_000);
