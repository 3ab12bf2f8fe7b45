import { readFileSync } from "node:fs";
import { systemClock } from "../../src/lib/clock.ts";
import { upgradeStore } from "../../src/store/open.ts";

/** Upgrades the database in a folder and prints by how much the process grew at most. */

const [, , folder = ""] = process.argv;

/** Linux only. */
const peakMib = () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1]) / 1024;

const before = peakMib();
const finished = await upgradeStore({ dataDir: folder, clock: systemClock, onProgress() {} });
process.stdout.write(JSON.stringify({ finished, grownMib: Math.round(peakMib() - before) }), () => process.exit());
