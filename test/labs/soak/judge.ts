import { median } from "../bench/histogram.ts";
import type { Ledger } from "../bench/ledger.ts";
import { type Bar, bar, mb, ms } from "../bench/report.ts";
import type { Books } from "./books.ts";
import type { Sample } from "./sampler.ts";
import { fitTrend, mediansOf, type Trend } from "./trend.ts";

export interface Soaked {
  samples: readonly Sample[];
  ledger: Ledger;
  books: Books;
  /** What the server logged at warn or error. */
  said: string;
  /** Whether it ran until it was stopped. */
  survived: boolean;
  /** Answers of 500 and above, by the server's own count. */
  serverFaults: number;
}

/** What a fifth of the time does is a warm-up: caches fill, code is compiled. */
const warmupShare = 0.2;
/** Of a short soak, a tenth. */
const spanMinutes = 0.5;
const spans = 10;
/**
 * So much the memory may have grown in the measured time, or so much an hour, whichever is more: the collector alone moves it
 * by some megabytes. In 20 minutes it stands for a leak of 75 MB an hour, 14 bytes for each event; in a day for 1 MB.
 */
const maxGrowthBytes = 20e6;
const maxSlopeBytesPerHour = 1e6;
const maxWalBytes = 64e6;
const descriptorSlack = 20;
const threadSlack = 2;
const maxP99Growth = 1.5;
const p99SlackMs = 5;

/** In bytes an hour. */
function memoryTrend(samples: readonly Sample[]): Trend {
  const points = warm(samples).map(({ minutes, residentBytes }) => ({ x: minutes, y: residentBytes }));
  const span = Math.min(spanMinutes, ((points.at(-1)?.x ?? 0) - (points[0]?.x ?? 0)) / spans);
  const { slope, standardError } = fitTrend(mediansOf(points, span));
  return { slope: slope * 60, standardError: standardError * 60 };
}

export function judgeSoak({ samples, ledger, books, said, survived, serverFaults }: Soaked): Bar[] {
  const trend = memoryTrend(samples);
  const rest = warm(samples);
  const hours = ((rest.at(-1)?.minutes ?? 0) - (rest[0]?.minutes ?? 0)) / 60;
  const maxSlope = Math.max(maxSlopeBytesPerHour, maxGrowthBytes / hours);
  const walPeak = Math.max(...samples.map(({ walBytes }) => walBytes));
  const refused = [...ledger.refused.values()].reduce((sum, count) => sum + count, 0);
  return [
    bar(
      "memory does not grow",
      trend.slope - 2 * trend.standardError < maxSlope,
      `${signedMb(trend.slope)}/h ± ${mb(2 * trend.standardError)}/h`,
      `under ${mb(maxSlope)}/h within its error: ${mb(maxSlope * hours)} in the ${(hours * 60).toFixed(1)} minutes after the warm-up`,
    ),
    flatBar("descriptors", rest, "descriptors", descriptorSlack),
    flatBar("threads", rest, "threads", threadSlack),
    bar("write-ahead log at its largest", walPeak < maxWalBytes, mb(walPeak), `under ${mb(maxWalBytes)}`),
    steadyBar("p99 of ingestion", rest, "ingestionP99Ms"),
    steadyBar("p99 from due to arrival", rest, "endToEndP99Ms"),
    bar("lost events", ledger.lost() === 0, `${ledger.lost()} of ${ledger.accepted}`, "none"),
    bar("events refused or changed", refused + ledger.wrong === 0, `${refused} and ${ledger.wrong}`, "none"),
    bar("answers of 500 and above", serverFaults === 0, String(serverFaults), "none"),
    bar(
      "other requests that failed",
      books.faults.length === 0,
      `${books.counts.get("faults") ?? 0}${books.faults.map((fault) => `\n      ${fault}`).join("")}`,
      "none",
    ),
    bar(
      "the server ran on without a warning",
      survived && said === "",
      survived ? said.slice(0, 400) || "silent" : "it ended",
      "silent",
    ),
  ];
}

const warm = (samples: readonly Sample[]) => samples.slice(Math.floor(samples.length * warmupShare));

type Field = "descriptors" | "threads" | "ingestionP99Ms" | "endToEndP99Ms";

/** Medians of the first and the last third. */
function thirds(samples: readonly Sample[], field: Field): [number, number] {
  const third = Math.ceil(samples.length / 3);
  const values = samples.map((sample) => sample[field]).filter((value) => !Number.isNaN(value));
  return [median(values.slice(0, third)), median(values.slice(-third))];
}

function flatBar(name: string, samples: readonly Sample[], field: Field, slack: number): Bar {
  const [first, last] = thirds(samples, field);
  return bar(name, last <= first + slack, `${first} in the first third, ${last} in the last`, `at most ${slack} more`);
}

function steadyBar(name: string, samples: readonly Sample[], field: Field): Bar {
  const [first, last] = thirds(samples, field);
  const allowed = first * maxP99Growth + p99SlackMs;
  return bar(name, last <= allowed, `${ms(first)} in the first third, ${ms(last)} in the last`, `up to ${ms(allowed)}`);
}

const signedMb = (bytes: number) => `${bytes < 0 ? "−" : "+"}${mb(Math.abs(bytes))}`;
