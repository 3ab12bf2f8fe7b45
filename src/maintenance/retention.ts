import { endedForMs } from "../domain/retention.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import type { Log } from "../lib/log.ts";
import { createLoop, type Loop } from "../lib/loop.ts";
import type { AccountChoice, AccountKept, OldEvents, RetentionVerbs } from "../store/retention.ts";
import { unlessDamaged } from "../store/unless-damaged.ts";
import { createAnswerPruner } from "./answers.ts";

/** Events per step: a few milliseconds, so that live traffic does not feel it. */
const chunk = 200;

/** Nobody waits for it: it takes at most a quarter of the time, even where steps take long because the disk is busy. */
const pausePerWork = 3;
const longestPauseMs = 2_000;

const dayMs = 24 * 60 * 60_000;

/** Measuring an account takes at most this fraction of the time. */
const measuredPerWork = 50;

const lookEveryMs = 60_000;

/** Events that were still waiting when a walk passed them, and have ended since, go with the next walk from the start. */
const beginAgainAfterMs = dayMs;

/**
 * A walk by size begins again sooner, since the oldest events are to go first: after ten times as long as it took to get to the
 * end, at the next look if there are few events. Going through two million that all wait, before each new one, would never end.
 */
const restPerWalk = 10;

const failurePauseMs = 5_000;

export interface RetentionSettings {
  /** How long events are kept, with their records and attempts; null: forever. */
  readonly retentionMs: number | null;
  /** How long their payloads are kept; these go first. */
  readonly retentionPayloadsMs: number | null;
  /** Bytes that the store may take; beyond that, the oldest events go. Null: no limit. */
  readonly retentionMaxBytes: number | null;
}

export interface RetentionDeps {
  store: RetentionVerbs;
  settings: RetentionSettings;
  clock: Clock;
  log: Log;
  /** Whether the job is assigned to this node. */
  mayRun(): boolean;
  /** Wakes the node that has the job. */
  passOn(): void;
  /** Called when there is space to give back. */
  onFreed(): void;
}

/** One pass through the events, for accounts that keep them for the same time. */
interface Walk {
  readonly what: "events" | "payloads";
  /** Null: regardless of age, while the store takes too much. */
  readonly ageMs: number | null;
  readonly accounts: AccountChoice;
  afterSeq: number;
  /** By `clock.monotonicMs`. */
  begunAt: number;
  /** When it goes through all events again; null until it has got to the end. */
  beginAgainAt: number | null;
  isAtEnd: boolean;
  /** Events gone since the walk was last at its end. */
  gone: number;
}

/**
 * Removes what has become old, in small steps that yield to traffic. Each age has its own walk through the events, in order,
 * which remembers its place: what it has passed is not looked at again until it begins again, a day later, or at the next start.
 */
export function createRetention({ store, settings, clock, log, mayRun, passOn, onFreed }: RetentionDeps): Loop {
  const { retentionMs: eventsMs, retentionPayloadsMs: payloadsMs, retentionMaxBytes: maxBytes } = settings;
  let walks: readonly Walk[] = [];
  let isDue = true;
  /** Measured sizes of the accounts that have a limit. */
  let measured = new Map<number, { readonly bytes: number; readonly staleAt: number }>();

  const walkOf = (what: Walk["what"], ageMs: Walk["ageMs"], accounts: AccountChoice): Walk => ({
    ...{ what, ageMs, accounts },
    ...{ afterSeq: 0, begunAt: clock.monotonicMs(), beginAgainAt: null, isAtEnd: false, gone: 0 },
  });

  /** One per age; accounts without an age of their own use the server's. */
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

  /** A walk keeps its state if its accounts stay the same. */
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
    const before = walks;
    walks = wanted.map((walk) => known.get(nameOf(walk)) ?? walk);
    for (const walk of before) if (!walks.includes(walk)) end(walk);
    walks.forEach(begin);
  }

  /** What took long to measure is trusted for longer. */
  async function storageOf(tenantKey: number): Promise<number> {
    const startedAt = clock.monotonicMs();
    const known = measured.get(tenantKey);
    if (known && startedAt < known.staleAt) return known.bytes;
    const bytes = await store.storageOf(tenantKey);
    const endedAt = clock.monotonicMs();
    measured.set(tenantKey, { bytes, staleAt: endedAt + measuredPerWork * (endedAt - startedAt) });
    return bytes;
  }

  /** An account over its storage limit accepts nothing new until something old has gone. */
  async function judgeStorage(accounts: readonly AccountKept[]): Promise<void> {
    const limited = new Set(
      accounts.flatMap(({ tenantKey, ownStorageBytes: most }) => (most === null ? [] : tenantKey)),
    );
    measured = new Map([...measured].filter(([tenantKey]) => limited.has(tenantKey)));
    for (const { tenantKey, ownStorageBytes, storageFullAt } of accounts) {
      if (ownStorageBytes === null) continue;
      const bytes = await unlessDamaged(storageOf(tenantKey), null);
      if (bytes === null) continue;
      const isFull = bytes > ownStorageBytes;
      if (isFull === (storageFullAt !== null)) continue;
      await unlessDamaged(store.noteStorageFull(tenantKey, isFull ? clock.now() : null), undefined);
    }
  }

  const answers = createAnswerPruner({ store, clock });

  /** A walk that is under way goes on. */
  function begin(walk: Walk): void {
    const now = clock.monotonicMs();
    walk.isAtEnd = false;
    if (walk.beginAgainAt === null || now < walk.beginAgainAt) return;
    walk.begunAt = now;
    walk.beginAgainAt = null;
    walk.afterSeq = 0;
  }

  function end(walk: Walk): void {
    const now = clock.monotonicMs();
    const restMs = walk.ageMs === null ? restPerWalk * (now - walk.begunAt) : Number.POSITIVE_INFINITY;
    walk.beginAgainAt ??= Math.min(now + restMs, walk.begunAt + beginAgainAfterMs);
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
      unlessDamaged(
        verb(
          tenantKey,
          some.map(({ seq }) => seq),
          endedBy,
        ),
        0,
      ),
    );
    return (await Promise.all(gone)).reduce((sum, one) => sum + one, 0);
  }

  async function take(walk: Walk): Promise<void> {
    if (walk.ageMs === null && maxBytes !== null && (await store.usedBytes()) <= maxBytes) {
      // Next time, the oldest events have to go again.
      walk.beginAgainAt = 0;
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

  /** Between two steps of a walk, too: walks may take hours, and an account over its limit is to be stopped within a minute. */
  async function lookAround(): Promise<void> {
    // While it cannot be read what accounts keep for longer, no walk begins.
    const accounts = await unlessDamaged(store.accountsKeptOtherwise(), null);
    if (accounts !== null) plan(accounts);
    answers.begin();
    if (accounts !== null) await judgeStorage(accounts);
    isDue = false;
    clock.after(lookEveryMs, () => {
      isDue = true;
      loop.wake();
    });
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
        await lookAround();
        return "more";
      }
      const walk = walks.find(({ isAtEnd }) => !isAtEnd);
      if (walk) await take(walk);
      else if (!(await answers.step())) return "idle";
      return "more";
    },
    onFailure(error) {
      log.write("warn", "retention.failed", { error: messageOf(error) });
    },
  });
  return loop;
}
