import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { createDescriptorWatch, type DescriptorWatch, type DescriptorWatchDeps } from "./descriptor-watch.ts";
import { createDiskWatch, type DiskWatch, type DiskWatchOptions } from "./disk-watch.ts";
import { createIdClockWatch } from "./id-clock-watch.ts";
import { createStorageWatch, type StorageWatch, type StorageWatchDeps } from "./storage-watch.ts";

/** What can run short or fail on the machine underneath the program; each watch logs when that begins and when it is over. */
export interface MachineWatch {
  readonly disk: DiskWatch;
  readonly storage: StorageWatch;
  readonly descriptors: DescriptorWatch;
  /** Called with how far the ids of events are ahead of the clock. */
  readonly idClock: (aheadMs: number) => void;
}

export interface MachineWatchDeps {
  /** The folder of the database. */
  folder: string;
  minFreeBytes: number;
  clock: Clock;
  log: Log;
  /** See `DescriptorWatchDeps`. */
  shed: DescriptorWatchDeps["shed"];
  onStorageFailure: StorageWatchDeps["onFailure"];
  onLowDisk: NonNullable<DiskWatchOptions["onLow"]>;
}

export function createMachineWatch(deps: MachineWatchDeps): MachineWatch {
  const { folder, minFreeBytes, clock, log, shed, onStorageFailure, onLowDisk } = deps;
  return {
    disk: createDiskWatch({ folder, minFreeBytes, clock, log, onLow: onLowDisk }),
    storage: createStorageWatch({ clock, log, onFailure: onStorageFailure }),
    descriptors: createDescriptorWatch({ clock, log, shed }),
    idClock: createIdClockWatch(log, clock.now),
  };
}
