import { formatDuration } from "../../../lib/duration.ts";
import { count, counted } from "../../count.ts";
import { percentile } from "../rig/machine.ts";
import type { Pair } from "../rig/report.ts";
import type { DiskFullFigures } from "./run.ts";

/** The figures of a disk-full test, for people. */
export function diskFullPairs(figures: DiskFullFigures): Pair[] {
  const { resumedMs } = figures;
  return [
    [
      "Full disks",
      `${figures.cycles}, filled by ${counted(figures.filling, "event")}; ` +
        `${counted(figures.restarts, "restart")} while the disk was full`,
    ],
    ["Refusals", `${count(figures.refusals)} requests`],
    ["Events", `${count(figures.acknowledged)} more acknowledged, ${count(figures.records)} records`],
    [
      "Deliveries",
      `${count(figures.arrivals)} arrived, ${count(figures.verifiedSignatures)} with identical bytes and a valid ` +
        `signature; ${figures.duplicates} repeated after a restart`,
    ],
    ["Held", `${counted(figures.held, "outcome")} of attempts waited in memory until there was space`],
    [
      "Resumed",
      `${formatDuration(percentile(resumedMs, 50))} (p50) after space was freed, ${formatDuration(Math.max(0, ...resumedMs))} at most`,
    ],
  ];
}
