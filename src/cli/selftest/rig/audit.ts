import { type Clock, sleep } from "../../../lib/clock.ts";
import type { Account, Api } from "./account.ts";
import { isForGood, type Ledger, type RecordTally, tallyKey, toldFaults } from "./ledger.ts";
import { refusal } from "./switchboard.ts";

/** What the server says about an event's delivery (specification, "Event record"). */
export interface ListedRecord {
  readonly eventId: string;
  readonly state: string;
  readonly targetWebhook: string;
  readonly errorReason: string | null;
  readonly errorCode: string | null;
  readonly statusCode: number | null;
  readonly attempts: number;
  /** As stored: the text, not its parsed value. */
  readonly payload: string;
}

/** Numbers of an account's records, by final state. */
export type Ended = Record<"DELIVERED" | "FAILED", number>;

const pageSize = 1000;

/** All records of an account, newest event first. Nothing may be sent meanwhile. */
export async function listRecords(api: Api, { session: token }: Account): Promise<ListedRecord[]> {
  const records: ListedRecord[] = [];
  for (let page = 0; ; page++) {
    const found = readPage(await api.read(`/v1/events?size=${pageSize}&page=${page}`, token));
    records.push(...found);
    if (found.length < pageSize) return records;
  }
}

/** Matches the text around a payload; no payload contains either part. */
const payloadText = /"originalPayload":(.*?),"attempts":/gs;

function readPage(text: string): ListedRecord[] {
  const { events } = JSON.parse(text) as { events: Omit<ListedRecord, "payload">[] };
  const payloads = [...text.matchAll(payloadText)];
  return events.map((record, i) => ({ ...record, payload: payloads[i]?.[1] ?? "" }));
}

export async function countEnded(api: Api, account: Account): Promise<Ended> {
  const [DELIVERED, FAILED] = await Promise.all([countIn(api, "DELIVERED", account), countIn(api, "FAILED", account)]);
  return { DELIVERED, FAILED };
}

export async function countIn(api: Api, state: string, { session: token }: Account): Promise<number> {
  const path = `/v1/events/state/${state}?payload=false&size=1`;
  return (await api.send<{ total: number }>("GET", path, 200, { token })).total;
}

const pollEveryMs = 50;
/** A server begins no attempt when less than this is left of its lease. */
const leaseLeftMs = 11_000;
/** Longer than any pause between attempts: if nothing at all has moved for this long, nothing will. */
const patienceMs = 60_000;

/**
 * Waits until nothing is left to do, or no more need be known: a server that sends endlessly would never be done.
 * @param left how much is left
 * @returns what was left when it had not changed for a minute and nothing had arrived either, or when there were as many
 *   faults as are printed; 0 when everything is done
 */
export async function whenSettled(clock: Clock, ledger: Ledger, left: () => Promise<number>): Promise<number> {
  let seen = "";
  let since = clock.monotonicMs();
  for (;;) {
    const count = await left();
    if (count === 0 || ledger.faults.count >= toldFaults) return count;
    const now = `${count} ${ledger.figures.arrivals}`;
    if (now !== seen) since = clock.monotonicMs();
    else if (clock.monotonicMs() - since > patienceMs) return count;
    seen = now;
    await sleep(clock, pollEveryMs);
  }
}

export interface Audited {
  /** Oldest first. */
  readonly eventIds: readonly string[];
  readonly ended: Ended;
  /** Attempts that arrived but are in no record: they were under way when the server was killed. */
  readonly unrecordedAttempts: number;
  /** Attempts of one delivery recorded in addition to another one that ended it, see `auditRepetition`. */
  readonly lateAttempts: number;
}

/** A record that arrived more often than its cut-off attempts explain. */
interface Repetition {
  readonly eventId: string;
  readonly path: string;
  /** Final answers other than the first one. */
  readonly duplicates: number;
  readonly unrecorded: number;
}

/**
 * Checks an account against the books once everything that was sent has ended:
 * - what was acknowledged is stored, what was refused is not, and every other request is stored whole or not at all;
 * - nothing is stored that was not sent, byte for byte, and each event has one record for each webhook, in the one state
 *   that follows from the webhook's answers;
 * - every record was delivered, and no delivery is of an event that is not stored;
 * - an attempt that is not in the record was under way during a crash; each can be the cause of one duplicate. So can what a
 *   server had under way while it was frozen, see `auditRepetition`. Nothing else can;
 * - the counts that the server keeps in addition to the rows match the rows.
 */
export async function auditAccount(api: Api, account: Account, ledger: Ledger, hooksUrl: string): Promise<Audited> {
  const records = await listRecords(api, account);
  const { repetitions, ...audited } = auditRecords(account, records, ledger, hooksUrl);
  const { session: token } = account;
  let lateAttempts = 0;
  for (const repetition of repetitions) {
    lateAttempts += await auditRepetition(api, account, repetition, ledger, hooksUrl);
  }
  const me = await api.send<{ events_this_month: number }>("GET", "/v1/tenants/me", 200, { token });
  const found = { ...(await countEnded(api, account)), events: me.events_this_month };
  const expected = { ...audited.ended, events: audited.eventIds.length };
  if (!Bun.deepEquals(found, expected)) {
    ledger.fault(`${account.id} reports ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
  }
  return { ...audited, lateAttempts };
}

interface AuditedRecords extends Omit<Audited, "lateAttempts"> {
  readonly repetitions: readonly Repetition[];
}

function auditRecords(
  account: Account,
  records: readonly ListedRecord[],
  ledger: Ledger,
  hooksUrl: string,
): AuditedRecords {
  const byEvent = Map.groupBy(records, ({ eventId }) => eventId);
  auditRequests(account, byEvent, ledger);
  auditOrder(account, records, ledger);
  const repetitions: Repetition[] = [];
  let unrecordedAttempts = 0;
  const ended: Ended = { DELIVERED: 0, FAILED: 0 };
  const manners = new Map(account.hooks.map(({ path, manner }) => [hooksUrl + path, manner]));
  const expected = account.hooks.map(({ path }) => hooksUrl + path).sort();
  for (const [eventId, own] of byEvent) {
    const targets = own.map(({ targetWebhook }) => targetWebhook).sort();
    if (!Bun.deepEquals(targets, expected)) {
      ledger.fault(`${eventId} has records for ${targets.join(", ")} instead of ${expected.join(", ")}`);
    }
    for (const record of own) {
      const state = manners.get(record.targetWebhook) === "refusing" ? "FAILED" : "DELIVERED";
      unrecordedAttempts += auditRecord(record, state, ledger, hooksUrl, repetitions);
      ended[state] += 1;
    }
  }
  const paths = new Set(account.hooks.map(({ path }) => path));
  for (const key of ledger.tallies.keys()) {
    const [path = "", eventId = ""] = key.split(" ");
    if (paths.has(path) && !byEvent.has(eventId)) ledger.fault(`${eventId} was delivered to ${path} but is not stored`);
  }
  return { eventIds: [...byEvent.keys()].reverse(), ended, unrecordedAttempts, repetitions };
}

function auditRequests(account: Account, stored: ReadonlyMap<string, unknown>, ledger: Ledger): void {
  const known = new Set<string>();
  for (const request of ledger.requests) {
    if (request.account !== account) continue;
    const ids = request.events.flatMap(({ eventId }) => eventId ?? []);
    const found = ids.filter((eventId) => stored.has(eventId));
    for (const eventId of ids) known.add(eventId);
    const size = request.events.length;
    if (request.fate === "acknowledged" && found.length < size) {
      const lost = ids.filter((eventId) => !stored.has(eventId));
      ledger.fault(`LOST: ${lost.length} events were acknowledged but are not stored: ${lost.slice(0, 3).join(", ")}`);
    }
    if (request.fate === "refused" && found.length > 0) {
      ledger.fault(`${found[0]} was refused but is stored`);
    }
    if (request.fate === "open" && found.length > 0 && found.length < size) {
      ledger.fault(
        `${found.length} events of a batch of ${size} are stored, but a batch must be stored whole or not at all`,
      );
    }
  }
  for (const eventId of stored.keys()) {
    if (!known.has(eventId)) ledger.fault(`${eventId} is stored for ${account.id} with an unknown payload`);
  }
}

/** Checks that the most recent ingestion comes first. */
function auditOrder(account: Account, records: readonly ListedRecord[], ledger: Ledger): void {
  const at = records.findIndex(({ eventId }, i) => i > 0 && eventId > (records[i - 1]?.eventId ?? ""));
  if (at !== -1) ledger.fault(`the list of ${account.id} is out of order at ${records[at]?.eventId}`);
}

/** @returns its attempts that are not recorded */
function auditRecord(
  record: ListedRecord,
  expected: keyof Ended,
  ledger: Ledger,
  hooksUrl: string,
  repetitions: Repetition[],
): number {
  const { eventId, state, targetWebhook, errorReason, errorCode, statusCode, attempts, payload } = record;
  const path = targetWebhook.slice(hooksUrl.length);
  const tally = ledger.tallies.get(tallyKey(path, eventId));
  if (ledger.eventIdOf(Buffer.from(payload)) !== eventId) {
    ledger.fault(`${eventId} is stored with ${payload.length} characters that were not sent as this event`);
  }
  const isAsExpected =
    expected === "FAILED" ? errorCode === "http_status" && statusCode === refusal : errorCode === null;
  if (state !== expected || !isAsExpected) {
    ledger.fault(`${eventId} is ${state} for ${path} in the end (${errorReason})`);
    return 0;
  }
  const times = timesIn(tally);
  if (times.length === 0) ledger.fault(`LOST: ${eventId} is ${state} for ${path}, which never responded that way`);
  const unrecorded = (tally?.arrivals ?? 0) - attempts;
  if (unrecorded < 0) ledger.fault(`${eventId} has ${-unrecorded} attempts in its record that ${path} never received`);
  const duplicates = times.reduce((sum, n) => sum + n - 1, 0);
  if (duplicates > Math.max(0, unrecorded)) repetitions.push({ eventId, path, duplicates, unrecorded });
  return Math.max(0, unrecorded);
}

const timesIn = (tally: RecordTally | undefined) => [...(tally?.concluded.values() ?? [])].map(({ times }) => times);

interface ListedAttempt {
  readonly targetWebhook: string;
  readonly number: number;
  readonly startedAt: string;
  readonly durationMs: number;
  readonly statusCode: number | null;
  readonly errorCode: string | null;
  readonly replayGroupId: string | null;
}

/**
 * What a frozen server had under way is in the log, too, and explains a duplicate, in one of two ways:
 * - its answer came, but its time was up when the server resumed: it is logged as unanswered;
 * - the server had its answer, but its lease had run out by the time it came to record it, so that another server had begun
 *   the next attempt: both are logged, and they began at least as far apart as the part of a lease that must be left for an
 *   attempt to begin.
 * @returns how many there are
 */
async function auditRepetition(
  api: Api,
  account: Account,
  { eventId, path, duplicates, unrecorded }: Repetition,
  ledger: Ledger,
  hooksUrl: string,
): Promise<number> {
  const token = account.session;
  const listed = await api.send<ListedAttempt[]>("GET", `/v1/events/${eventId}/attempts`, 200, { token });
  const attempts = listed.filter(({ targetWebhook }) => targetWebhook === hooksUrl + path);
  const late = ledger.hasStoodStill ? countLate(attempts) : 0;
  if (duplicates <= Math.max(0, unrecorded) + late) return late;
  const log = attempts.map(
    ({ number, startedAt, durationMs, statusCode, errorCode, replayGroupId }) =>
      `${number}: ${startedAt} ${durationMs} ms ${statusCode ?? errorCode} ${replayGroupId ?? ""}`,
  );
  ledger.fault(
    `${eventId} arrived ${duplicates} times too often at ${path}, with ${unrecorded} attempts interrupted by a crash ` +
      `and ${late} by a pause (${log.join("; ")})`,
  );
  return late;
}

function countLate(attempts: readonly ListedAttempt[]): number {
  const unanswered = attempts.filter(({ errorCode }) => errorCode === "timeout").length;
  const runs = Map.groupBy(attempts, ({ replayGroupId }) => replayGroupId);
  const overtaken = [...runs.values()].map((run) => {
    const endings = run
      .filter(({ statusCode }) => statusCode !== null && isForGood(statusCode))
      .map(({ startedAt }) => Date.parse(startedAt))
      .sort((a, b) => a - b);
    return endings.filter((at, i) => i > 0 && at - (endings[i - 1] ?? at) >= leaseLeftMs).length;
  });
  return unanswered + overtaken.reduce((sum, count) => sum + count, 0);
}
