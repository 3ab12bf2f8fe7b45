import { readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock as clock } from "../../../lib/clock.ts";
import { createRandom, fork } from "../../../lib/random.ts";
import { operatorTokenFile } from "../../../secrets.ts";
import { examineStore } from "../../../store/open.ts";
import type { Trial } from "../rig/conduct.ts";
import { createFaults, noteFault } from "../rig/ledger.ts";
import { type Server, startServer } from "../rig/server.ts";
import { startSwitchboard } from "../rig/switchboard.ts";
import { createBallastDisk } from "./ballast.ts";
import { createDiskFullFigures, createDiskFullRun, type DiskFullFigures } from "./run.ts";

export const diskFullSettings = {
  webhookConcurrency: 16,
  retrySchedule: "100ms,300ms,1s,2s,4s,8s",
  minFreeDisk: "0",
} as const;

export interface DiskFullTrialOptions {
  readonly cycles: number;
  readonly seed: number;
  readonly folder: string;
  onProgress(figures: DiskFullFigures): void;
}

/** The run with its own server, on a file system that really is full. */
export function createDiskFullTrial({
  cycles,
  seed,
  folder,
  onProgress,
}: DiskFullTrialOptions): Trial<DiskFullFigures> {
  const random = createRandom(seed);
  const faults = createFaults();
  const figures = createDiskFullFigures();
  const switchboard = startSwitchboard(clock, fork(random), faults);
  const dataDir = join(folder, "data");
  const settings = {
    POSTRIDER_RETRY_SCHEDULE: diskFullSettings.retrySchedule,
    POSTRIDER_WEBHOOK_CONCURRENCY: String(diskFullSettings.webhookConcurrency),
    POSTRIDER_MIN_FREE_DISK: diskFullSettings.minFreeDisk,
    POSTRIDER_PAYMENTS: "off",
    POSTRIDER_LOG_FORMAT: "json",
  };
  let server: Server | null = null;

  async function start(): Promise<number> {
    server = startServer({ dataDir, settings, clock, faults });
    return (await server.ready).port;
  }

  /** Alternates between a kill and a clean stop, which a full disk must not spoil either. */
  async function restart(): Promise<number> {
    // The run has already counted this restart.
    if (figures.restarts % 2 === 1) await server?.kill();
    else await stop();
    await switchboard.whenDrained();
    return start();
  }

  async function stop(): Promise<void> {
    const code = await server?.stop();
    if (code !== 0) noteFault(faults, `when asked to stop, the server exited with ${code}`);
  }

  return {
    figures,
    faults,
    async run() {
      const port = await start();
      const operatorToken = readFileSync(join(dataDir, operatorTokenFile), "utf8").trim();
      const run = createDiskFullRun({
        cycles,
        random,
        clock,
        port,
        restart,
        operatorToken,
        webhookConcurrency: diskFullSettings.webhookConcurrency,
        disk: createBallastDisk(folder, operatorToken),
        switchboard,
        faults,
        figures,
        onProgress,
      });
      await run();
      await stop();
      const examined = await examineStore(dataDir);
      for (const fault of examined.faults) noteFault(faults, fault);
      figures.backend = examined.backend;
    },
    async end() {
      await server?.kill();
      switchboard.stop();
    },
  };
}
