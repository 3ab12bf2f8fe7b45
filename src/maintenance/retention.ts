import { endedForMs } from "../domain/retention.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import type { Log } from "../lib/log.ts";
import { createLoop, type Loop } from "../lib/loop.ts";
import type { AccountChoice, AccountKept, OldEvents, RetentionVerbs } from "../store/retention.ts";
import { createAnswerPruner } from "./answers.ts";

/** Events in one go: a few milliseconds, so that live traffic does not feel it. */
const chunk = 200;

/** Nobody waits for it: at most a fourth of the time, also where a step takes long because the disk has enough to do. */
const pausePerWork = 3;
const longestPauseMs = 2_000;

const dayMs = 24 * 60 * 60_000;

/** Measuring an account takes this part of the time at most. */
const measuredPerWork = 50;

const lookEveryMs = 60_000;

/** What waited as a walk passed it, and has ended since, goes with the next one that begins at the first event. */
const beginAgainAfterMs = dayMs;

const failurePauseMs = 5_000;

export interface RetentionSettings {
  /** How long events are kept, with their records and attempts; null: for ever. */
  readonly retentionMs: number | null;
  /** How long their payloads are, which go first. */
  readonly retentionPayloadsMs: number | null;
  /** Bytes that the store may take; beyond, the oldest events go. Null: any number. */
  readonly retentionMaxBytes: number | null;
}

export interface RetentionDeps {
  store: RetentionVerbs;
  settings: RetentionSettings;
  clock: Clock;
  log: Log;
  /** Whether the job is this node's. */
  mayRun(): boolean;
  /** Wakes the node that has it. */
  passOn(): void;
  /** There is room to give back. */
  onFreed(): void;
}

/** One way through the events, for accounts that keep them equally long. */
interface Walk {
  readonly what: "events" | "payloads";
  /** Null: whatever their age, as long as there is too much. */
  readonly ageMs: number | null;
  readonly accounts: AccountChoice;
  afterSeq: number;
  /** By `clock.monotonicMs`; null: it has not begun. */
  begunAt: number | null;
  isAtEnd: boolean;
  /** Of what has gone since it was last at its end. */
  gone: number;
}

/**
 * Lets go what has become old, in small steps that yield to traffic. Each age has a walk through the events in their order, which
 * remembers where it was: what it has passed is not looked at again before the next day, or the next start.
 */
export function createRetention({ store, settings, clock, log, mayRun, passOn, onFreed }: RetentionDeps): Loop {
  const { retentionMs: eventsMs, retentionPayloadsMs: payloadsMs, retentionMaxBytes: maxBytes } = settings;
  let walks: readonly Walk[] = [];
  let isDue = true;
  /** Of accounts with a budget. */
  let measured = new Map<number, { readonly bytes: number; readonly staleAt: number }>();

  const walkOf = (what: Walk["what"], ageMs: Walk["ageMs"], accounts: AccountChoice): Walk => ({
    ...{ what, ageMs, accounts },
    ...{ afterSeq: 0, begunAt: null, isAtEnd: false, gone: 0 },
  });

  /** One for each age; accounts that say nothing of their own have that of the server. */
  function walksOf(what: Walk["what"], usualMs: number | null, ownDays: ReadonlyMap<number, number>): Walk[] {
    const byAge = Map.groupBy(ownDays, ([, days]) => days);
    byAge.delete(0);
    const own = [...byAge].map(([days, some]) =>
      walkOf(what, days * dayMs, { kind: "only", tenantKeys: some.map(([tenantKey]) => tenantKey) }),
    );
    return usualMs === null
      ? own
      : [...own, walkOf(what, usualMs, { kind: "except", tenantKeys: [...ownDays.keys()] })];
  }

  /** What was known of a walk stays with the one for the same accounts. */
  function plan(accounts: readonly AccountKept[]): void {
    const daysOf = (of: "ownRetentionDays" | "ownPayloadDays") =>
      new Map(accounts.flatMap(({ tenantKey, [of]: days }) => (days === null ? [] : [[tenantKey, days] as const])));
    const wanted = [
      ...(maxBytes === null ? [] : [walkOf("events", null, { kind: "except", tenantKeys: [] })]),
      ...walksOf("events", eventsMs, daysOf("ownRetentionDays")),
      ...walksOf("payloads", payloadsMs, daysOf("ownPayloadDays")),
    ];
    const nameOf = ({ what, ageMs, accounts: chosen }: Walk) => JSON.stringify([what, ageMs, chosen]);
    const known = new Map(walks.map((walk) => [nameOf(walk), walk]));
    walks = wanted.map((walk) => known.get(nameOf(walk)) ?? walk);
    walks.forEach(begin);
  }

  /** What took long to measure is believed for longer. */
  async function storageOf(tenantKey: number): Promise<number> {
    const startedAt = clock.monotonicMs();
    const known = measured.get(tenantKey);
    if (known && startedAt < known.staleAt) return known.bytes;
    const bytes = await store.storageOf(tenantKey);
    const endedAt = clock.monotonicMs();
    measured.set(tenantKey, { bytes, staleAt: endedAt + measuredPerWork * (endedAt - startedAt) });
    return bytes;
  }

  /** An account that takes more than it may takes nothing new, until something old has gone. */
  async function judgeStorage(accounts: readonly AccountKept[]): Promise<void> {
    const limited = new Set(
      accounts.flatMap(({ tenantKey, ownStorageBytes: most }) => (most === null ? [] : tenantKey)),
    );
    measured = new Map([...measured].filter(([tenantKey]) => limited.has(tenantKey)));
    for (const { tenantKey, ownStorageBytes, storageFullAt } of accounts) {
      if (ownStorageBytes === null) continue;
      const isFull = (await storageOf(tenantKey)) > ownStorageBytes;
      if (isFull !== (storageFullAt !== null)) await store.noteStorageFull(tenantKey, isFull ? clock.now() : null);
    }
  }

  const answers = createAnswerPruner({ store, clock });

  function begin(walk: Walk): void {
    const now = clock.monotonicMs();
    walk.isAtEnd = false;
    if (walk.begunAt !== null && now - walk.begunAt < beginAgainAfterMs) return;
    walk.begunAt = now;
    walk.afterSeq = 0;
  }

  function end(walk: Walk): void {
    walk.isAtEnd = true;
    if (walk.gone === 0) return;
    log.write("info", "retention.done", { what: walk.what, events: walk.gone });
    walk.gone = 0;
    onFreed();
  }

  async function letGo({ what }: Walk, { events }: OldEvents, endedBy: number): Promise<number> {
    const seqsOf = Map.groupBy(events, ({ tenantKey }) => tenantKey);
    const verb = what === "events" ? store.forgetEvents : store.erasePayloads;
    const gone = [...seqsOf].map(([tenantKey, some]) =>
      verb(
        tenantKey,
        some.map(({ seq }) => seq),
        endedBy,
      ),
    );
    return (await Promise.all(gone)).reduce((sum, one) => sum + one, 0);
  }

  async function take(walk: Walk): Promise<void> {
    if (walk.ageMs === null && maxBytes !== null && (await store.usedBytes()) <= maxBytes) {
      // What has to go next time is the oldest again.
      walk.begunAt = null;
      end(walk);
      return;
    }
    const now = clock.now();
    const found = await store.oldEvents({
      ...{ afterSeq: walk.afterSeq, before: now - (walk.ageMs ?? endedForMs) },
      ...{ accounts: walk.accounts, withPayload: walk.what === "payloads", limit: chunk },
    });
    walk.gone += await letGo(walk, found, now - endedForMs);
    const last = found.events.at(-1)?.seq;
    walk.afterSeq = Math.max(walk.afterSeq, found.lookedTo ?? last ?? 0);
    if (found.lookedTo === null) end(walk);
  }

  const loop = createLoop({
    clock,
    mayStep: mayRun,
    passOn,
    failurePauseMs,
    pausePerWork,
    longestPauseMs,
    async step() {
      if (isDue) {
        const accounts = await store.accountsKeptOtherwise();
        plan(accounts);
        answers.begin();
        await judgeStorage(accounts);
        isDue = false;
        return "more";
      }
      const walk = walks.find(({ isAtEnd }) => !isAtEnd);
      if (walk) await take(walk);
      else if (!(await answers.step())) {
        clock.after(lookEveryMs, () => {
          isDue = true;
          loop.wake();
        });
        return "idle";
      }
      return "more";
    },
    onFailure(error) {
      log.write("warn", "retention.failed", { error: messageOf(error) });
    },
  });
  return loop;
}
