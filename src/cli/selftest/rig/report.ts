import { formatDuration } from "../../../lib/duration.ts";
import { version } from "../../../version.ts";
import { counted } from "../../count.ts";
import type { Io } from "../../io.ts";
import { createStyle } from "../../style.ts";
import { formatPairs } from "../../table.ts";
import type { Faults } from "./ledger.ts";
import { describeHardware, type Mount, measureSync, mountOf, percentile, type SyncLatency } from "./machine.ts";

/** What the figures were measured on. */
export interface Machine {
  readonly hardware: string;
  readonly versions: string;
  readonly folder: string;
  readonly mount: Mount;
  readonly sync: SyncLatency;
}

export function describeMachine(folder: string): Omit<Machine, "versions"> {
  return { hardware: describeHardware(), folder, mount: mountOf(folder), sync: measureSync(folder) };
}

export const describeVersions = (backend: string): string =>
  [`postrider ${version}`, `Bun ${Bun.version}`, ...(backend ? [backend] : [])].join(", ");

export type Pair = readonly [name: string, value: string];

export interface Result {
  readonly title: string;
  /** The command that repeats it. */
  readonly command: string;
  /** What everything amounts to if nothing was wrong. */
  readonly verdict: string;
  readonly seed: number;
  readonly tookMs: number;
  readonly machine: Machine;
  /** What was done to the server. */
  readonly settings: object;
  readonly figures: object;
  readonly faults: Faults;
}

export function writeJson({ command, seed, tookMs, machine, settings, figures, faults }: Result): string {
  const held = faults.count === 0;
  const all = { held, command, seed, tookMs: Math.round(tookMs), machine, settings, figures, faults };
  return JSON.stringify(all, (name, value) => (name.endsWith("Ms") && Array.isArray(value) ? summarise(value) : value));
}

/** Many durations are summarised by three numbers. */
const summarise = (values: readonly number[]) => ({
  count: values.length,
  p50: Math.round(percentile(values, 50)),
  max: Math.round(Math.max(0, ...values)),
});

/** The figures for people, with what they were measured on, and what does not hold. */
export function writeSheet(
  { title, command, verdict, tookMs, machine, faults }: Result,
  pairs: Pair[],
  io: Io,
): string {
  const style = createStyle(io);
  const all = [...pairs, ...machinePairs(machine), ["Command", `${command}, in ${formatDuration(tookMs)}`] as const];
  const lines = [`\n${style.bold(title)}\n`, formatPairs(all, style).replace(/^/gm, "  "), ""];
  if (faults.count === 0) return [...lines, `${style.good("✓")} ${style.bold(verdict)}`].join("\n");
  lines.push(`${style.bad("✗")} ${style.bold(`Failed: ${counted(faults.count, "fault")}`)}`);
  lines.push(...faults.told.map((text) => `  ${text}`));
  if (faults.count > faults.told.length) lines.push(`  and ${faults.count - faults.told.length} more`);
  return [...lines, `  Folder kept: ${machine.folder}`, `  To repeat: ${command}`].join("\n");
}

function machinePairs({ hardware, versions, mount, sync }: Machine): Pair[] {
  const { type, device, isInMemory } = mount;
  return [
    ["Hardware", hardware],
    ["Versions", versions],
    ["Disk", `${type} (${device})${isInMemory ? ", in memory: a sync costs nothing" : ""}`],
    ["Sync", `4 KiB and fsync: p50 ${sync.p50Ms.toFixed(2)} ms, p99 ${sync.p99Ms.toFixed(2)} ms`],
  ];
}
