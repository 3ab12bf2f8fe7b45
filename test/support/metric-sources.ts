import type { MetricSources } from "../../src/http/metrics.ts";
import { alone } from "../../src/store/node-lease.ts";
import { createFakeClock } from "./fake-clock.ts";

/** The metrics of an idle server. */
export const metricSources = (given: Partial<MetricSources> = {}): MetricSources => ({
  clock: createFakeClock(),
  queueDepth: async () => ({ pending: 0, oldestDueAt: null }),
  stored: async () => ({ events: 0, usedBytes: 0 }),
  openStreams: () => 0,
  isPaused: () => false,
  inFlight: () => 0,
  disk: () => ({ freeBytes: 0, floorBytes: 0 }),
  storage: () => ({ databaseBytes: 0, logBytes: 0 }),
  oldestSnapshotSeconds: () => 0,
  descriptors: () => null,
  backups: () => null,
  nodeName: "a test",
  lease: () => alone,
  ...given,
});
