import { nowUs, tenantCount } from "../event.ts";
import { atRate, connectGenerator } from "../generator.ts";
import { createLedger } from "../ledger.ts";
import { ownCpuSeconds } from "../meter.ts";
import { showProgress } from "../output.ts";
import type { Receiver } from "../receiver.ts";
import type { Server } from "../servers.ts";

/** What ingestion and the server's memory did while something else went on. */
export interface Window {
  seconds: number;
  /** Accepted events; counted from when each was due, so that a server that falls behind cannot hide it. */
  accepted: number;
  ingestionP50Ms: number;
  ingestionP99Ms: number;
  ingestionMaxMs: number;
  endToEndP99Ms: number;
  /** Deliveries of the seeded history: a backlog, a replay. */
  historical: number;
  residentStartBytes: number;
  /** The highest in the first and in the second half of the time. */
  peakBytes: readonly [number, number];
  serverCores: number;
  generatorCores: number;
}

/** Events sent at a fixed rate by the first accounts, from now until `stop`. */
export interface Load {
  /** What happens from now until `work` has ended. */
  during<T>(label: string, work: Promise<T>): Promise<{ result: T; window: Window }>;
  /** @throws Error when something was refused, lost or changed */
  stop(): Promise<void>;
}

const sampleMs = 100;
const drainMs = 15_000;
const drainPollMs = 20;
let lastRun = 0;

/** Counts the deliveries of the history apart, from then on until the next load or count. */
export function countHistorical(receiver: Receiver): { count(): number } {
  let historical = 0;
  const ledger = Object.assign(createLedger(++lastRun), { noteReceived: () => void historical++ });
  receiver.attach(ledger, () => {});
  return { count: () => historical };
}

export async function startLoad(server: Server, receiver: Receiver, rate: number): Promise<Load> {
  const ledger = createLedger(++lastRun);
  const { noteReceived } = ledger;
  let historical = 0;
  let stopped = false;
  Object.assign(ledger, {
    // Whatever is delivered late, the next event is sent when it is due.
    inWindow: () => 0,
    noteReceived(...[event, tenantOfPath, atUs]: Parameters<typeof noteReceived>) {
      if (event === null) historical += 1;
      else noteReceived(event, tenantOfPath, atUs);
    },
  });
  const generator = await connectGenerator(server.port, server.apiKeys.slice(0, tenantCount));
  receiver.attach(ledger, generator.pump);
  generator.start(ledger, atRate(rate, nowUs()));

  async function during<T>(label: string, work: Promise<T>) {
    ledger.ingestion.reset();
    ledger.endToEnd.reset();
    const before = {
      atMs: performance.now(),
      accepted: ledger.accepted,
      historical,
      residentBytes: server.meter.residentBytes(),
      cpu: server.meter.cpuSeconds(),
      own: ownCpuSeconds(),
    };
    const samples: { atMs: number; bytes: number }[] = [];
    const sampler = setInterval(() => {
      samples.push({ atMs: performance.now(), bytes: server.meter.residentBytes() });
      showProgress(`${label}  ${((performance.now() - before.atMs) / 1000).toFixed(0)} s`);
    }, sampleMs);
    try {
      const result = await Promise.race([work, generator.broken]);
      const seconds = (performance.now() - before.atMs) / 1000;
      const halfMs = before.atMs + seconds * 500;
      const peak = (half: typeof samples) => Math.max(before.residentBytes, ...half.map(({ bytes }) => bytes));
      const window: Window = {
        seconds,
        accepted: ledger.accepted - before.accepted,
        ingestionP50Ms: ledger.ingestion.percentileMs(50),
        ingestionP99Ms: ledger.ingestion.percentileMs(99),
        ingestionMaxMs: ledger.ingestion.maxMs(),
        endToEndP99Ms: ledger.endToEnd.percentileMs(99),
        historical: historical - before.historical,
        residentStartBytes: before.residentBytes,
        peakBytes: [
          peak(samples.filter(({ atMs }) => atMs < halfMs)),
          peak(samples.filter(({ atMs }) => atMs >= halfMs)),
        ],
        serverCores: (server.meter.cpuSeconds() - before.cpu) / seconds,
        generatorCores: (ownCpuSeconds() - before.own) / seconds,
      };
      return { result, window };
    } finally {
      clearInterval(sampler);
    }
  }

  return {
    during,
    async stop() {
      if (stopped) return;
      stopped = true;
      generator.stop();
      const endMs = performance.now() + drainMs;
      while (ledger.accepted > ledger.received && performance.now() < endMs) await Bun.sleep(drainPollMs);
      generator.close();
      const { wrong, firstRefusal } = ledger;
      if (ledger.lost() > 0 || wrong > 0 || firstRefusal !== undefined) {
        throw new Error(`Beside it ${ledger.lost()} events were lost, ${wrong} were wrong. ${firstRefusal ?? ""}`);
      }
    },
  };
}
