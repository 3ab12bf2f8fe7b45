import type { Database } from "bun:sqlite";
import type { DeliveryRequest } from "../../../../src/delivery/request.ts";
import { webhookDisabled, webhookRemoved } from "../../../../src/domain/failure.ts";
import { ingestedAtMs, parseEventId } from "../../../../src/lib/id.ts";
import { formatIso } from "../../../../src/lib/iso-time.ts";
import type { Settled, Settlement } from "../../../../src/store/deliveries.ts";
import type { FakeClock } from "../../../support/fake-clock.ts";
import type { Findings } from "./invariants.ts";
import type { Ledger } from "./ledger.ts";
import type { Sent } from "./network.ts";
import type { PaceModel } from "./pace.ts";
import type { ThrottleModel } from "./throttle.ts";

export interface LiveCheckDeps {
  clock: FakeClock;
  /** The same database on a connection of its own: it sees what is committed, and nothing else. */
  client: Database;
  ledger: Ledger;
  findings: Findings;
  scheduleMs: readonly number[];
  webhookConcurrency: number;
  pace: PaceModel;
  throttle: ThrottleModel;
  underWay(): readonly Sent[];
  /** How far the wall clock was ever set back: a time that was read before may seem to lie ahead. */
  steppedBackMs(): number;
}

interface RecordRow {
  state: number;
  run: number;
  attemptsInRun: number;
  nextAttemptAt: number | null;
  reason: string | null;
  orderHash: number | null;
}

const givenUpReasons = [webhookRemoved.reason, webhookDisabled.reason];
const dayMs = 24 * 60 * 60 * 1000;

/** What is checked as the program acts. */
export function createLiveChecks(deps: LiveCheckDeps) {
  const { clock, client, ledger, throttle, findings, scheduleMs, webhookConcurrency } = deps;
  const { expect, broken } = findings;

  const selectRecord = client.prepare<RecordRow, [number]>(
    `select state, run, attempts_in_run as attemptsInRun, next_attempt_at as nextAttemptAt, error_reason as reason,
       order_hash as orderHash
     from delivery where key = ?1`,
  );
  /** What a replay has begun again joins behind the head, whatever its event. */
  const selectEarlier = client.prepare<{ n: number }, [number, number, number]>(
    `select count(*) as n from delivery where webhook_key = ?1 and order_hash = ?2 and event_seq < ?3 and state = 0
       and run = 1 and replay_key is null`,
  );
  const selectEvent = client.prepare<{ payload: Uint8Array; tenantKey: number; tenantId: string }, [number]>(
    `select payload, tenant_key as tenantKey, tenant.id as tenantId from event join tenant on tenant.key = tenant_key
     where seq = ?1`,
  );
  const selectWebhook = client.prepare<{ url: string; tenantKey: number }, [number]>(
    "select url, tenant_key as tenantKey from webhook where key = ?1",
  );
  const selectAttempt = client.prepare<{ n: number }, [number, number, string, string]>(
    `select count(*) as n from attempt where event_seq = ?1 and number = ?2
       and (select url from webhook where key = webhook_key) = ?3
       and (select id from tenant where key = attempt.tenant_key) = ?4`,
  );
  const selectEnd = client.prepare<{ n: number }, [string, number, string]>(
    `select count(*) as n from delivery where tenant_key = (select key from tenant where id = ?1) and event_seq = ?2
       and (select url from webhook where key = webhook_key) = ?3 and finished_at is not null`,
  );
  const selectReplay = client.prepare<{ queued: number }, [string, string]>(
    "select queued from replay where id = ?1 and tenant_key = (select key from tenant where id = ?2)",
  );
  const selectStanding = client.prepare<
    { tenantId: string; failingSince: number | null; removedAt: number | null },
    [string]
  >(
    `select tenant.id as tenantId, failing_since as failingSince, removed_at as removedAt
     from webhook join tenant on tenant.key = tenant_key where webhook.id = ?1`,
  );
  const selectTenant = client.prepare<{ deletedAt: number | null }, [string]>(
    "select deleted_at as deletedAt from tenant where id = ?1",
  );
  const selectRun = client.prepare<{ id: string }, [number]>("select id from replay where key = ?1");
  const sentBy = new Map<Settlement["delivery"], Sent>();
  /** Of attempts in lines: the webhook and the line. */
  const lineOf = new WeakMap<Sent, string>();

  /** @param orderHash of its record, as it is on disk */
  function sendingInLine(sent: Sent, orderHash: number, what: string): void {
    const { webhookKey, eventSeq } = sent.delivery;
    const line = `${webhookKey} ${orderHash}`;
    lineOf.set(sent, line);
    const beside = deps.underWay().filter((other) => other.fate === "under way" && lineOf.get(other) === line);
    expect(beside.length === 0, "ordered", () => `${what}, beside ${beside[0]?.delivery.eventId}`);
    const earlier = selectEarlier.get(webhookKey, orderHash, eventSeq)?.n ?? 0;
    expect(earlier === 0, "ordered", () => `${what}, before ${earlier} earlier ones`);
  }

  /** One that ends before it is sent, because its webhook is removed meanwhile, counts as well. */
  function beginning(tenantKey: number): void {
    expect(deps.pace.take(tenantKey), "paced", () => `an attempt of account ${tenantKey}`);
  }

  function sending({ url, body, headers, delivery }: DeliveryRequest, sent: Sent): void {
    sentBy.set(delivery, sent);
    const { deliveryKey, webhookKey, tenantKey, run } = delivery;
    const what = `${delivery.eventId} to ${url}, run ${run}`;
    expect(!ledger.removedWebhooks.has(webhookKey), "removed", () => what);
    expect(!ledger.deletedAccounts.has(tenantKey), "silenced", () => `${what}: deleted`);
    expect(!ledger.pausedAccounts.has(tenantKey), "silenced", () => `${what}: suspended`);
    const replay = delivery.replayKey === null ? null : selectRun.get(delivery.replayKey);
    expect(!ledger.cancelledReplays.has(replay?.id ?? ""), "cancelled", () => `${what}, of ${replay?.id}`);
    const beside = deps.underWay().filter((other) => other.delivery.webhookKey === webhookKey).length;
    const told = throttle.of(tenantKey, webhookKey);
    const most = Math.min(webhookConcurrency, told?.maxConcurrency ?? webhookConcurrency);
    expect(beside < most, "concurrency", () => `${beside} beside ${what}`);
    expect(told?.paused !== 1, "throttled", () => `${what}: paused`);
    expect(throttle.take(tenantKey, webhookKey), "throttled", () => `${what}: more than ${told?.rateLimit} a second`);
    const mark = throttle.markOf(tenantKey, url);
    const isMarked = mark === undefined || (headers["X-Mark"] ?? null) === mark;
    expect(isMarked, "throttled", () => `${what}: ${headers["X-Mark"]} instead of ${mark}`);

    const event = selectEvent.get(delivery.eventSeq);
    const webhook = selectWebhook.get(webhookKey);
    if (!event) {
      broken("genuine", `${what}: there is no such event`);
      return;
    }
    const time = formatIso(ingestedAtMs(delivery.eventSeq));
    const payload = Buffer.from(event.payload).toString();
    const wanted = `{"eventId":"${delivery.eventId}","tenantId":"${event.tenantId}","ingestionTimestamp":"${time}","payload":${payload}}`;
    expect(body.toString() === wanted, "genuine", () => `${what}: ${body} instead of ${wanted}`);
    expect(headers["Service-Event-Id"] === delivery.eventId, "genuine", () => `${what}: another id in the header`);
    const isOwn = event.tenantKey === tenantKey && webhook?.tenantKey === tenantKey && webhook.url === url;
    expect(isOwn, "genuine", () => `${what}: to ${webhook?.url} of ${webhook?.tenantKey}, not ${tenantKey}`);

    const record = selectRecord.get(deliveryKey);
    // A replay that was committed a moment ago may have begun another run, or replaced the record.
    if (!record || record.run !== run) return;
    if (record.orderHash !== null) sendingInLine(sent, record.orderHash, what);
    const hasEnded = record.state === 1 || (record.state === 2 && !givenUpReasons.includes(record.reason ?? ""));
    expect(!hasEnded, "once", () => `${what} has ended: state ${record.state}`);
    expect(record.attemptsInRun <= scheduleMs.length, "schedule", () => `${what}: attempt ${record.attemptsInRun + 1}`);
    if (record.state !== 0 || record.attemptsInRun === 0) return;
    const early = (record.nextAttemptAt ?? 0) - clock.now();
    expect(early <= deps.steppedBackMs(), "delay", () => `${what}: ${early} ms early`);
  }

  /** The moments between which a retry has to come, by the receiver's answer; null when none may. */
  function retryTimes({ delivery, status, retryAfter }: Sent, now: number): [number, number] | null {
    const pauseMs = scheduleMs[delivery.attemptsInRun];
    const isFinal =
      status !== null && ((status >= 200 && status < 300) || (status >= 400 && status < 500 && status !== 429));
    if (isFinal || pauseMs === undefined) return null;
    const text = status === 429 || status === 503 ? (retryAfter ?? "") : "";
    const asked = /^\d+$/.test(text) ? now + Number(text) * 1000 : /GMT$/.test(text) ? Date.parse(text) : 0;
    const least = Math.min(asked, now + dayMs);
    return [Math.max(now + 0.8 * pauseMs - 1, least), Math.max(now + 1.2 * pauseMs + 1, least)];
  }

  function settled({ delivery, attempt, next }: Settlement, { kind }: Settled): void {
    const sent = sentBy.get(delivery);
    const what = `${delivery.eventId} to ${delivery.url}`;
    if (!sent) {
      broken("log", `${what} was recorded and never made`);
      return;
    }
    sentBy.delete(delivery);
    sent.isRecorded = true;
    expect(attempt.startedAt === sent.at, "log", () => `${what} began at ${sent.at}, not at ${attempt.startedAt}`);
    expect(
      attempt.statusCode === sent.status,
      "log",
      () => `${what} was answered ${sent.status}, not ${attempt.statusCode}`,
    );
    if (kind === "gone") return;
    const times = retryTimes(sent, sent.endedAt ?? 0);
    const isOk =
      times === null ? next.kind !== "retry" : next.kind === "retry" && next.at >= times[0] && next.at <= times[1];
    expect(isOk, "delay", () => `${what} after ${sent.status}: ${JSON.stringify(next)} instead of ${times}`);
    const isDelivered = sent.status !== null && sent.status >= 200 && sent.status < 300;
    expect(isDelivered === (next.kind === "delivered"), "proven", () => `${what}: ${sent.status} became ${next.kind}`);
  }

  /** Whether what is told can be seen on disk, as a fact of this account. */
  function isOnDisk(tenantId: string, kind: string, data: Record<string, unknown>): boolean {
    if (kind === "account.changed") return data.tenant_id === tenantId;
    if (kind === "replay.progressed")
      return Number(data.queued) <= (selectReplay.get(String(data.id), tenantId)?.queued ?? -1);
    if (kind === "webhook.changed") {
      const { webhookId, failingSince } = data;
      const found = selectStanding.get(String(webhookId));
      // One that was removed may be forgotten by now.
      if (!found) return true;
      const since = failingSince === null ? null : Date.parse(String(failingSince));
      return found.tenantId === tenantId && (found.removedAt !== null || found.failingSince === since);
    }
    const seq = parseEventId(String(data.eventId))?.seq ?? -1;
    if (kind === "event.accepted") return selectEvent.get(seq)?.tenantId === tenantId;
    const url = String(data.targetWebhook);
    const number = Number(kind === "delivery.attempted" ? data.number : data.attempts);
    if ((selectAttempt.get(seq, number, url, tenantId)?.n ?? 0) > 0) return true;
    return kind === "delivery.finished" && (selectEnd.get(tenantId, seq, url)?.n ?? 0) > 0;
  }

  function publishing(tenantId: string, kind: string, data: Record<string, unknown>): void {
    if (isOnDisk(tenantId, kind, data)) return;
    // The rows of a deleted account may be gone, and nobody listens any more.
    if (selectTenant.get(tenantId)?.deletedAt !== null) return;
    broken("stream", `${kind} ${JSON.stringify(data)} for ${tenantId} is not on disk`);
  }

  return { beginning, sending, settled, publishing };
}

export type LiveChecks = ReturnType<typeof createLiveChecks>;
