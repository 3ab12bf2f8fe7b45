import { readdirSync, readFileSync, writeFileSync } from "node:fs";

/** Sampled through a whole run; the kernel's own high-water mark catches what falls between two samples. */
const sampleEveryMs = 250;
/** Linux counts processor time in hundredths of a second, on every architecture (`USER_HZ`). */
const ticksPerSecond = 100;

/** Watches one process from outside: resident memory and processor time. */
export interface Meter {
  /** The latest sample, bytes. */
  residentBytes(): number;
  /** The highest since the process started, or since `resetPeak`, bytes. */
  peakBytes(): number;
  /** Forgets the peak, the kernel's too. */
  resetPeak(): void;
  /** The highest sample since the last call, bytes. */
  takePhasePeak(): number;
  /** Processor seconds of all threads since the process started. */
  cpuSeconds(): number;
  /** Open file descriptors, sockets among them. */
  descriptors(): number;
  stop(): void;
}

export function startMeter(pid: number): Meter {
  let residentBytes = 0;
  let peakBytes = 0;
  let phasePeak = 0;

  function sample() {
    const status = readProc(`/proc/${pid}/status`);
    residentBytes = kilobytesIn(status, "VmRSS") ?? residentBytes;
    peakBytes = Math.max(peakBytes, kilobytesIn(status, "VmHWM") ?? 0, residentBytes);
    phasePeak = Math.max(phasePeak, residentBytes);
  }

  sample();
  const timer = setInterval(sample, sampleEveryMs);
  return {
    residentBytes() {
      sample();
      return residentBytes;
    },
    peakBytes() {
      sample();
      return peakBytes;
    },
    resetPeak() {
      // proc(5): 5 resets VmHWM to the current resident memory.
      writeFileSync(`/proc/${pid}/clear_refs`, "5");
      peakBytes = 0;
    },
    takePhasePeak() {
      sample();
      const peak = phasePeak;
      phasePeak = residentBytes;
      return peak;
    },
    cpuSeconds() {
      // Fields 14 and 15, counted from behind the program's name, which may hold anything.
      const stat = readProc(`/proc/${pid}/stat`);
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
    },
    descriptors: () => readdirSync(`/proc/${pid}/fd`).length,
    stop: () => clearInterval(timer),
  };
}

function readProc(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

function kilobytesIn(status: string, field: string): number | undefined {
  const value = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1];
  return value === undefined ? undefined : Number(value) * 1024;
}

/** Processor seconds of this process: load generator and receiver. */
export function ownCpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Processor seconds since the machine started that were not idle, on all cores; what a hypervisor took away counts too. */
export function machineCpuSeconds(): number {
  // cpu user nice system idle iowait irq softirq steal
  const [user, nice, system, , , irq, softirq, steal] =
    readProc("/proc/stat").split("\n", 1)[0]?.split(/ +/).slice(1) ?? [];
  const ticks = [user, nice, system, irq, softirq, steal].reduce((sum, field) => sum + Number(field ?? 0), 0);
  return ticks / ticksPerSecond;
}
