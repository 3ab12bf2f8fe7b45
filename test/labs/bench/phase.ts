import { nowUs } from "./event.ts";
import { connectGenerator, type GeneratorOptions, type Pace, windowEvents } from "./generator.ts";
import { createLedger, type Ledger } from "./ledger.ts";
import { type Meter, machineCpuSeconds, ownCpuSeconds } from "./meter.ts";
import { showProgress } from "./output.ts";
import type { Receiver } from "./receiver.ts";

/** What one run of one server came to. */
export interface PhaseResult {
  seconds: number;
  /** Delivered events a second, in the measured time. */
  rate: number;
  /** Accepted events a second, in the measured time. */
  acceptedRate: number;
  ingestionP50Ms: number;
  ingestionP99Ms: number;
  endToEndP50Ms: number;
  endToEndP99Ms: number;
  /** From the 202 to the delivery. */
  delayP50Ms: number;
  delayP99Ms: number;
  delayMaxMs: number;
  /** Processor seconds for each second: 1 is one core. */
  serverCores: number;
  generatorCores: number;
  /** Everything else on the machine, the kernel's share of our own input and output included. */
  otherCores: number;
  serverCpuSeconds: number;
  /** Processor time of the server for one delivered event, microseconds: unlike the rate, not lowered by a busy machine. */
  serverUsPerEvent: number;
  /** From the end of the load until everything accepted had come. */
  drainSeconds: number;
  residentEndBytes: number;
  residentPeakBytes: number;
  accepted: number;
  lost: number;
  duplicates: number;
  wrong: number;
  refused: number;
}

export interface Phase {
  label: string;
  pace: (startUs: number) => Pace;
  warmupSeconds: number;
  seconds: number;
  /** @default 15 s after the load has ended, for what is still under way */
  drainMs?: number;
  /** Called when the measured time begins and when it ends. */
  atEdge?: () => void;
}

/** What a load is put on. */
export interface Target extends GeneratorOptions {
  port: number;
  apiKeys: readonly string[];
  meter: PhaseMeter;
}

export type PhaseMeter = Pick<Meter, "cpuSeconds" | "residentBytes" | "takePhasePeak">;

const defaultDrainMs = 15_000;
const drainPollMs = 20;
const progressMs = 250;
let lastRun = 0;

/** Connects, warms up, measures, stops the load and waits until everything accepted has come. */
export async function runPhase(
  { port, apiKeys, meter, ...options }: Target,
  receiver: Pick<Receiver, "attach">,
  phase: Phase,
): Promise<PhaseResult> {
  const ledger = createLedger(++lastRun);
  // For each run anew: a server cuts connections that were quiet while another one was measured.
  const generator = await connectGenerator(port, apiKeys, options);
  receiver.attach(ledger, generator.pump);
  meter.takePhasePeak();
  generator.start(ledger, phase.pace(nowUs()));
  await Promise.race([wait(phase.warmupSeconds, `${phase.label}: warming up`, ledger, options), generator.broken]);

  ledger.ingestion.reset();
  ledger.endToEnd.reset();
  ledger.delay.reset();
  const before = takeSnapshot(ledger, meter);
  phase.atEdge?.();
  await Promise.race([wait(phase.seconds, phase.label, ledger, options), generator.broken]);
  const measured = {
    ...since(before, takeSnapshot(ledger, meter)),
    ingestionP50Ms: ledger.ingestion.percentileMs(50),
    ingestionP99Ms: ledger.ingestion.percentileMs(99),
    endToEndP50Ms: ledger.endToEnd.percentileMs(50),
    endToEndP99Ms: ledger.endToEnd.percentileMs(99),
    delayP50Ms: ledger.delay.percentileMs(50),
    delayP99Ms: ledger.delay.percentileMs(99),
    delayMaxMs: ledger.delay.maxMs(),
    residentEndBytes: meter.residentBytes(),
    residentPeakBytes: meter.takePhasePeak(),
  };

  phase.atEdge?.();
  generator.stop();
  const stoppedUs = nowUs();
  await Promise.race([drain(ledger, phase.drainMs ?? defaultDrainMs), generator.broken]);
  const drainSeconds = (nowUs() - stoppedUs) / 1e6;
  generator.close();
  const refused = [...ledger.refused.values()].reduce((sum, count) => sum + count, 0);
  if (ledger.accepted === 0) throw new Error(`${phase.label}: nothing was accepted.\n${ledger.firstRefusal ?? ""}`);
  const { accepted, duplicates, wrong } = ledger;
  return { ...measured, drainSeconds, accepted, lost: ledger.lost(), duplicates, wrong, refused };
}

const takeSnapshot = (ledger: Ledger, meter: PhaseMeter) => ({
  atUs: nowUs(),
  accepted: ledger.accepted,
  received: ledger.received,
  server: meter.cpuSeconds(),
  own: ownCpuSeconds(),
  machine: machineCpuSeconds(),
});

type Snapshot = ReturnType<typeof takeSnapshot>;

function since(before: Snapshot, after: Snapshot) {
  const seconds = (after.atUs - before.atUs) / 1e6;
  const events = after.received - before.received;
  const serverCpuSeconds = after.server - before.server;
  const ownSeconds = after.own - before.own;
  return {
    seconds,
    rate: events / seconds,
    acceptedRate: (after.accepted - before.accepted) / seconds,
    serverCores: serverCpuSeconds / seconds,
    generatorCores: ownSeconds / seconds,
    otherCores: Math.max(0, after.machine - before.machine - serverCpuSeconds - ownSeconds) / seconds,
    serverCpuSeconds,
    serverUsPerEvent: (serverCpuSeconds * 1e6) / events,
  };
}

async function wait(
  seconds: number,
  label: string,
  ledger: Ledger,
  { window = windowEvents }: GeneratorOptions,
): Promise<void> {
  const endMs = performance.now() + seconds * 1000;
  let last = ledger.received;
  let lastMs = performance.now();
  for (let leftMs = seconds * 1000; leftMs > 0; leftMs = endMs - performance.now()) {
    await Bun.sleep(Math.min(leftMs, progressMs));
    const rate = ((ledger.received - last) / (performance.now() - lastMs)) * 1000;
    last = ledger.received;
    lastMs = performance.now();
    const waiting = `${ledger.inWindow()} of ${window} under way`;
    showProgress(`${label}  ${Math.ceil(leftMs / 1000)} s  ${rate.toFixed(0)}/s  ${waiting}`);
  }
}

async function drain(ledger: Ledger, forMs: number): Promise<void> {
  const endMs = performance.now() + forMs;
  const isDone = () => ledger.inWindow() <= 0 && ledger.accepted <= ledger.received;
  while (!isDone() && performance.now() < endMs) {
    showProgress(`waiting for ${ledger.inWindow()} events`);
    await Bun.sleep(drainPollMs);
  }
}
