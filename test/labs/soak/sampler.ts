import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { nowUs } from "../bench/event.ts";
import type { Ledger } from "../bench/ledger.ts";

/** What the server process holds at one moment, and how fast it was since the last sample. */
export interface Sample {
  minutes: number;
  residentBytes: number;
  descriptors: number;
  threads: number;
  walBytes: number;
  databaseBytes: number;
  ingestionP99Ms: number;
  endToEndP99Ms: number;
  accepted: number;
}

/** @param dataDir the server's own */
export function createSampler(pid: number, dataDir: string, ledger: Ledger) {
  const startUs = nowUs();
  const samples: Sample[] = [];
  const fileSize = (name: string) => {
    const path = join(dataDir, name);
    return existsSync(path) ? statSync(path).size : 0;
  };

  return {
    samples,
    /** @throws when the process has gone */
    take(): Sample {
      const status = readFileSync(`/proc/${pid}/status`, "latin1");
      const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? Number.NaN);
      const sample: Sample = {
        minutes: (nowUs() - startUs) / 60e6,
        residentBytes: field("VmRSS") * 1024,
        descriptors: readdirSync(`/proc/${pid}/fd`).length,
        threads: field("Threads"),
        walBytes: fileSize("postrider.db-wal"),
        databaseBytes: fileSize("postrider.db"),
        ingestionP99Ms: ledger.ingestion.percentileMs(99),
        endToEndP99Ms: ledger.endToEnd.percentileMs(99),
        accepted: ledger.accepted,
      };
      ledger.ingestion.reset();
      ledger.endToEnd.reset();
      samples.push(sample);
      return sample;
    },
  };
}
