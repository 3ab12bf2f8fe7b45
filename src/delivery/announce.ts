import type { DomainError } from "../domain/errors.ts";
import { refusalReasonOf } from "../domain/refused-events.ts";
import type { ReplayRef } from "../domain/replay.ts";
import type { Tenant } from "../domain/tenant.ts";
import { traceIdOf } from "../domain/trace-context.ts";
import type { Metrics } from "../http/metrics.ts";
import { ingestedAtMs, ingestedAtOf } from "../lib/id.ts";
import { formatIso } from "../lib/iso-time.ts";
import type { Log, LogFields } from "../lib/log.ts";
import type { StatRecorder } from "../maintenance/stat-recorder.ts";
import type { Settlement } from "../store/deliveries.ts";
import type { AcceptedEvents } from "../store/store.ts";
import type { Hub } from "../stream/hub.ts";
import type { FailureLog } from "./failure-log.ts";

export interface AnnounceDeps {
  hub: Pick<Hub, "publish">;
  stats: StatRecorder;
  metrics: Metrics;
  log: Log;
  failureLog: FailureLog;
  /** A run started by a replay has ended. */
  onReplayedRunEnded(replay: ReplayRef, tenantId: string): void;
}

/**
 * Announces what is now on disk to everything that wants to know: the tenant's streams, the statistics, the metrics, the log.
 */
export function createAnnouncer({ hub, stats, metrics, log, failureLog, onReplayedRunEnded }: AnnounceDeps) {
  return {
    accepted(tenant: Pick<Tenant, "key" | "id">, { eventIds, failed }: AcceptedEvents): void {
      metrics.eventsAccepted(eventIds.length);
      stats.accepted(tenant.key, { events: eventIds.length, failed });
      for (const eventId of eventIds) {
        hub.publish(tenant.id, "event.accepted", () => ({
          eventId,
          ingestionTimestamp: formatIso(ingestedAtOf(eventId)),
        }));
      }
      if (log.enabled("debug")) {
        for (const eventId of eventIds) log.write("debug", "event.accepted", { eventId, tenantId: tenant.id });
      }
    },

    /** @param events number of events in the request; 1 if it could not be read */
    refused(tenantKey: number, error: DomainError, events: number): void {
      const reason = refusalReasonOf(error);
      if (reason !== null) stats.refused(tenantKey, reason, events);
    },

    attempted(settlement: Settlement, kind: "settled" | "superseded"): void {
      const { delivery, attempt, next } = settlement;
      const answered = attempt.statusCode !== null;
      const ended = kind === "settled" && next.kind !== "retry" ? next.kind : null;
      stats.attempted(delivery, { ended, answered, durationMs: attempt.durationMs });
      metrics.attempted(next.kind, attempt.durationMs, answered);
      if (next.kind === "delivered" && delivery.run === 1) {
        metrics.delivered(attempt.startedAt + attempt.durationMs - ingestedAtMs(delivery.eventSeq));
      }
      hub.publish(delivery.tenantId, "delivery.attempted", () => attemptMessage(settlement));
      if (ended !== null) {
        if (delivery.replayKey !== null) {
          onReplayedRunEnded({ tenantKey: delivery.tenantKey, replayKey: delivery.replayKey }, delivery.tenantId);
        }
        hub.publish(delivery.tenantId, "delivery.finished", () => ({
          eventId: delivery.eventId,
          targetWebhook: delivery.url,
          state: ended === "delivered" ? "DELIVERED" : "FAILED",
          errorReason: attempt.error,
          errorCode: attempt.errorCode,
          statusCode: attempt.errorCode === null ? null : attempt.statusCode,
          attempts: delivery.attempts + 1,
          replayGroupId: delivery.replayGroupId,
        }));
      }
      failureLog.attempted(settlement);
      if (attempt.errorCode !== null) metrics.attemptFailed(attempt.errorCode, attempt.statusCode);
      if (log.enabled("debug")) log.write("debug", "delivery.attempted", traceOf(settlement, kind));
    },
  };
}

/** Everything known about an attempt, in one line, so that a delivery can be found by any of these fields. */
function traceOf({ delivery, attempt, next }: Settlement, kind: "settled" | "superseded"): LogFields {
  return {
    outcome: kind === "superseded" ? "superseded" : next.kind,
    eventId: delivery.eventId,
    tenantId: delivery.tenantId,
    host: URL.parse(delivery.url)?.host ?? null,
    run: delivery.run,
    attempt: delivery.attempts + 1,
    attemptInRun: delivery.attemptsInRun + 1,
    status: attempt.statusCode,
    errorCode: attempt.errorCode,
    startedAt: formatIso(attempt.startedAt),
    durationMs: attempt.durationMs,
    sinceAcceptedMs: attempt.startedAt + attempt.durationMs - ingestedAtMs(delivery.eventSeq),
    payloadBytes: delivery.payload.length,
    answerBytes: attempt.responseBody?.length ?? 0,
    address: attempt.answerHead?.address ?? null,
    isReplay: delivery.replayKey !== null,
    traceId: traceIdOf(delivery.trace),
    nextAttemptAt: next.kind === "retry" ? formatIso(next.at) : null,
  };
}

function attemptMessage({ delivery, attempt, next }: Settlement): Record<string, unknown> {
  return {
    eventId: delivery.eventId,
    targetWebhook: delivery.url,
    number: delivery.attempts + 1,
    startedAt: formatIso(attempt.startedAt),
    durationMs: attempt.durationMs,
    statusCode: attempt.statusCode,
    error: attempt.error,
    errorCode: attempt.errorCode,
    nextAttemptAt: next.kind === "retry" ? formatIso(next.at) : null,
    replayGroupId: delivery.replayGroupId,
  };
}
