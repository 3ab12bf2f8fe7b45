import { nowUs } from "./event.ts";
import { type Generator, type Pace, windowEvents } from "./generator.ts";
import { createLedger, type Ledger } from "./ledger.ts";
import { type Meter, ownCpuSeconds } from "./meter.ts";
import { showProgress } from "./output.ts";
import type { Receiver } from "./receiver.ts";

/** What one run of one server came to. */
export interface PhaseResult {
  seconds: number;
  /** Delivered events a second, in the measured time. */
  rate: number;
  ingestionP50Ms: number;
  ingestionP99Ms: number;
  endToEndP50Ms: number;
  endToEndP99Ms: number;
  /** Processor seconds for each second: 1 is one core. */
  serverCores: number;
  generatorCores: number;
  serverCpuSeconds: number;
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
}

export interface Bench {
  generator: Generator;
  receiver: Receiver;
  meter: Meter;
}

/** After the load has ended, this long for what is still under way. */
const drainMs = 15_000;
const drainPollMs = 20;
const progressMs = 250;
let lastRun = 0;

/** Warms up, measures, stops the load and waits until everything accepted has come. */
export async function runPhase({ generator, receiver, meter }: Bench, phase: Phase): Promise<PhaseResult> {
  const ledger = createLedger(++lastRun);
  receiver.attach(ledger, generator.pump);
  meter.takePhasePeak();
  generator.start(ledger, phase.pace(nowUs()));
  await Promise.race([wait(phase.warmupSeconds, `${phase.label}: warming up`, ledger), generator.broken]);

  ledger.ingestion.reset();
  ledger.endToEnd.reset();
  const before = { received: ledger.received, atUs: nowUs(), server: meter.cpuSeconds(), own: ownCpuSeconds() };
  await Promise.race([wait(phase.seconds, phase.label, ledger), generator.broken]);
  const seconds = (nowUs() - before.atUs) / 1e6;
  const serverCpuSeconds = meter.cpuSeconds() - before.server;
  const generatorCpuSeconds = ownCpuSeconds() - before.own;
  const measured = {
    seconds,
    rate: (ledger.received - before.received) / seconds,
    ingestionP50Ms: ledger.ingestion.percentileMs(50),
    ingestionP99Ms: ledger.ingestion.percentileMs(99),
    endToEndP50Ms: ledger.endToEnd.percentileMs(50),
    endToEndP99Ms: ledger.endToEnd.percentileMs(99),
    serverCores: serverCpuSeconds / seconds,
    generatorCores: generatorCpuSeconds / seconds,
    serverCpuSeconds,
    residentEndBytes: meter.residentBytes(),
    residentPeakBytes: meter.takePhasePeak(),
  };

  generator.stop();
  await Promise.race([drain(ledger), generator.broken]);
  const refused = [...ledger.refused.values()].reduce((sum, count) => sum + count, 0);
  if (ledger.accepted === 0) throw new Error(`${phase.label}: nothing was accepted.\n${ledger.firstRefusal ?? ""}`);
  const { accepted, duplicates, wrong } = ledger;
  return { ...measured, accepted, lost: ledger.lost(), duplicates, wrong, refused };
}

async function wait(seconds: number, label: string, ledger: Ledger): Promise<void> {
  const endMs = performance.now() + seconds * 1000;
  let last = ledger.received;
  let lastMs = performance.now();
  for (let leftMs = seconds * 1000; leftMs > 0; leftMs = endMs - performance.now()) {
    await Bun.sleep(Math.min(leftMs, progressMs));
    const rate = ((ledger.received - last) / (performance.now() - lastMs)) * 1000;
    last = ledger.received;
    lastMs = performance.now();
    const waiting = `${ledger.inWindow()} of ${windowEvents} under way`;
    showProgress(`${label}  ${Math.ceil(leftMs / 1000)} s  ${rate.toFixed(0)}/s  ${waiting}`);
  }
}

async function drain(ledger: Ledger): Promise<void> {
  const endMs = performance.now() + drainMs;
  const isDone = () => ledger.inWindow() <= 0 && ledger.accepted <= ledger.received;
  while (!isDone() && performance.now() < endMs) {
    showProgress(`waiting for ${ledger.inWindow()} events`);
    await Bun.sleep(drainPollMs);
  }
}
