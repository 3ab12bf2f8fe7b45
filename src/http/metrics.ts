import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { ErasedEndpoint } from "./endpoint.ts";

export interface MetricSources {
  queueDepth(): Promise<{ pending: number; oldestDueAt: number | null }>;
  now(): number;
  openStreams(): number;
  inFlight(): number;
}

/** What the operator can see, in the Prometheus text format. No label holds a tenant, a URL or a secret. */
export function createMetrics(sources: MetricSources) {
  const registers = [new Registry()];
  const registry = registers[0] as Registry;

  const accepted = new Counter({
    name: "postrider_events_accepted_total",
    help: "Events accepted and stored.",
    registers,
  });
  const attempts = new Counter({
    name: "postrider_delivery_attempts_total",
    help: "Delivery attempts by outcome: delivered, retry, failed.",
    labelNames: ["outcome"],
    registers,
  });
  const attemptSeconds = new Histogram({
    name: "postrider_delivery_attempt_duration_seconds",
    help: "Time from the start of an attempt to the complete head of the answer.",
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  const deliverySeconds = new Histogram({
    name: "postrider_delivery_latency_seconds",
    help: "Time from the acceptance of an event to its acknowledged delivery, first runs only.",
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 300, 3600, 36_000],
    registers,
  });
  const commitJobs = new Histogram({
    name: "postrider_commit_size",
    help: "Writes in one commit.",
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
    registers,
  });
  const commitSeconds = new Histogram({
    name: "postrider_commit_duration_seconds",
    help: "Time of one commit, the sync to disk included.",
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1],
    registers,
  });
  const requests = new Counter({
    name: "postrider_http_requests_total",
    help: "Answered requests by route and status.",
    labelNames: ["method", "route", "status"],
    registers,
  });
  const connections = new Counter({
    name: "postrider_delivery_connections_total",
    help: "Attempts by connection: reused or new.",
    labelNames: ["connection"],
    registers,
  });
  const pending = new Gauge({ name: "postrider_queue_depth", help: "Deliveries that have not ended.", registers });
  const oldest = new Gauge({
    name: "postrider_queue_oldest_due_seconds",
    help: "How long the longest waiting delivery has been due; 0 when none is.",
    registers,
  });
  const inFlight = new Gauge({ name: "postrider_delivery_in_flight", help: "Attempts under way.", registers });
  const streams = new Gauge({ name: "postrider_open_streams", help: "Open dashboard streams.", registers });
  const resident = new Gauge({ name: "process_resident_memory_bytes", help: "Resident memory.", registers });

  return {
    eventsAccepted: (count: number) => accepted.inc(count),
    attempted(outcome: "delivered" | "retry" | "failed", durationMs: number, answered: boolean) {
      attempts.inc({ outcome });
      if (answered) attemptSeconds.observe(durationMs / 1000);
    },
    delivered: (latencyMs: number) => deliverySeconds.observe(latencyMs / 1000),
    committed({ jobs, durationMs }: { jobs: number; durationMs: number }) {
      commitJobs.observe(jobs);
      commitSeconds.observe(durationMs / 1000);
    },
    answered: ({ method, path }: ErasedEndpoint, status: number) => requests.inc({ method, route: path, status }),
    connected: (reused: boolean) => connections.inc({ connection: reused ? "reused" : "new" }),
    async text(): Promise<string> {
      const depth = await sources.queueDepth();
      pending.set(depth.pending);
      oldest.set(depth.oldestDueAt === null ? 0 : Math.max(0, (sources.now() - depth.oldestDueAt) / 1000));
      inFlight.set(sources.inFlight());
      streams.set(sources.openStreams());
      resident.set(process.memoryUsage.rss());
      return registry.metrics();
    },
    contentType: registry.contentType,
  };
}

export type Metrics = ReturnType<typeof createMetrics>;
