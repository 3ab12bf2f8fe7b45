import type { WebhookStands } from "../domain/change.ts";
import { type DisablePolicy, disablesAt, mostGoneInARow } from "../domain/failing-webhook.ts";
import { isOwnFailure, isOwnOutage, type Silence, silenceAfter } from "../domain/own-outage.ts";
import type { WebhookRef } from "../domain/webhook.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import { formatIso, formatIsoOrNull } from "../lib/iso-time.ts";
import { createKeyedLock } from "../lib/keyed-lock.ts";
import type { Log } from "../lib/log.ts";
import type { Settlement } from "../store/deliveries.ts";
import type { Store } from "../store/store.ts";
import { announceWebhook, type WebhookHub } from "../stream/webhook-change.ts";
import type { TellAccount } from "./own-events.ts";

/** What is known here of each webhook whose latest attempt failed. About 300 bytes each. */
interface Streak {
  readonly webhook: WebhookRef;
  since: number;
  /** The latest failure that was heard of here: when it began, and when it was heard of. Null: others have heard of it. */
  latest: { readonly startedAt: number; readonly heardAt: number } | null;
  /** The latest success that was told of after a failure had begun; null: none was. */
  wellAt: number | null;
  /** When the deliveries that were answered 410 one after the other were heard of. */
  gone: readonly number[];
  /** Lost to outages of our own since its failures were noted last. */
  excusedMs: number;
  /** The store knows that it fails. */
  isNoted: boolean;
  /** Until then another failure changes nothing, but for a 410. */
  lookAt: number;
}

interface Success {
  readonly tenantId: string;
  readonly at: number;
}

/**
 * A webhook that fails now and then, and answers within this time, is never written: a success of one that is well, and
 * most failures, cost nothing but a look into memory.
 */
const unnotedMs = 60_000;

/** Pause after the store could not be asked. */
const learnRetryMs = 5_000;

export interface FailingWebhooks {
  /** Learns which webhooks fail, and tries again later if the store cannot be asked. It is told of every change from now on. */
  start(): Promise<void>;
  /** Told of every attempt, once it is on disk. */
  attempted(settlement: Settlement): void;
  /** What the store knows of a webhook, whoever found it out. It may be told after attempts that came later. */
  stands(webhook: WebhookRef, standing: WebhookStands): void;
  forget(webhookKeys: readonly number[]): void;
  forgetTenant(tenantKey: number): void;
  /** What others have noted meanwhile is not known. */
  forgetAll(): void;
  /** Resolves when all that it was told of is noted. */
  flush(): Promise<void>;
}

export interface FailingWebhooksDeps {
  store: Pick<Store, "failingWebhooks" | "noteFailures" | "noteSuccess">;
  clock: Clock;
  log: Log;
  hub: WebhookHub;
  policy: DisablePolicy;
  tell: TellAccount;
  /** Of a delivery that leaves this process: what an inbox takes says nothing of the network. */
  isOutbound(delivery: Settlement["delivery"]): boolean;
}

/** Sees which webhooks fail, and has the store note it when it matters (`domain/failing-webhook.ts`). */
export function createFailingWebhooks(deps: FailingWebhooksDeps): FailingWebhooks {
  const { store, clock, log, hub, policy, tell, isOutbound } = deps;
  const streaks = new Map<number, Streak>();
  const inTurn = createKeyedLock<number>();
  const underWay = new Set<Promise<void>>();
  let silence: Silence | null = null;
  /** When to ask the store which webhooks fail; null: it is known. */
  let learnAt: number | null = 0;
  /** Successes since it was asked, which its answer may not know of. Null: it is not being asked. */
  let heardMeanwhile: Map<number, Success> | null = null;

  /** Of one webhook one after the other: a success is never noted before the failure that it ends. */
  function note(webhookKey: number, action: () => Promise<void>): void {
    // What could not be noted is once more by the next attempt.
    const report = (error: unknown) => log.write("warn", "webhook.unnoted", { error: messageOf(error) });
    inBackground(inTurn.run(webhookKey, action).catch(report));
  }

  /** @returns whether failures count against those who receive */
  function hear({ delivery, attempt }: Settlement): boolean {
    const before = silence;
    // An answer, as nearly always: there is nothing to find out.
    if (before === null && attempt.statusCode !== null) return true;
    if (!isOutbound(delivery)) return true;
    const host = URL.parse(delivery.url)?.hostname ?? "";
    silence = silenceAfter(before, { host, ...attempt });
    const isOutage = isOwnOutage(silence);
    if (isOutage && !isOwnOutage(before)) log.write("warn", "network.silent", { since: formatIso(attempt.startedAt) });
    if (!silence && before && isOwnOutage(before)) excuse(before.since, clock.now());
    return !isOutage && !isOwnFailure(attempt.errorCode);
  }

  function excuse(from: number, until: number): void {
    log.write("info", "network.answers", { since: formatIso(from) });
    for (const streak of streaks.values()) {
      const lostMs = Math.max(0, until - Math.max(from, streak.since));
      if (streak.isNoted) streak.excusedMs += lostMs;
      else streak.since += lostMs;
    }
  }

  function succeeded({ tenantId, webhookKey }: Settlement["delivery"]): void {
    const success = { tenantId, at: clock.now() };
    heardMeanwhile?.set(webhookKey, success);
    const streak = streaks.get(webhookKey);
    if (!streak) return;
    streaks.delete(webhookKey);
    noteSuccess(streak, success);
  }

  function noteSuccess(streak: Streak, { tenantId, at }: Success): void {
    const { webhookKey } = streak.webhook;
    note(webhookKey, async () => {
      if (!streak.isNoted) return;
      try {
        const webhook = await store.noteSuccess(streak.webhook, at);
        if (!webhook) return;
        announceWebhook(hub, tenantId, webhook);
      } catch (error) {
        // So the next success is noted.
        const later = streaks.get(webhookKey);
        if (later) later.isNoted = true;
        else streaks.set(webhookKey, known(streak.webhook, streak.since, 0));
        throw error;
      }
    });
  }

  function failed({ delivery, attempt, next }: Settlement): void {
    const { tenantKey, tenantId, webhookKey } = delivery;
    const at = attempt.startedAt;
    const streak = streaks.get(webhookKey) ?? begin({ tenantKey, webhookKey }, at);
    const heardAt = clock.now();
    const before = streak.gone.length;
    const isGone = attempt.statusCode === 410 && next.kind === "failed";
    streak.latest = { startedAt: at, heardAt };
    streak.gone = isGone ? [...streak.gone, heardAt].slice(-mostGoneInARow) : [];
    const isRowKnown = Math.max(before, streak.gone.length) > 1 && before !== streak.gone.length;
    if (at < streak.lookAt && !isRowKnown) return;
    // What comes while it is being noted waits for the next time.
    streak.lookAt = at + unnotedMs;
    note(webhookKey, () => noteFailures(streak, tenantId, at));
  }

  async function noteFailures(streak: Streak, tenantId: string, at: number): Promise<void> {
    const { webhook: ref, since, wellAt, gone, excusedMs } = streak;
    streak.excusedMs = 0;
    try {
      const noted = await store.noteFailures(ref, { since, at, goneInARow: gone.length, excusedMs }, policy);
      if (!noted) return;
      streak.isNoted = true;
      // Otherwise a success was told of meanwhile, and what was noted is past.
      if (streak.wellAt === wellAt) {
        streak.since = noted.failing.since;
        streak.lookAt = noted.lookAgainAt;
      }
      const { webhook, failing, disabled, isNew, isToldNow } = noted;
      if (isNew || isToldNow || disabled) announceWebhook(hub, tenantId, webhook);
      const news = { about: ref, tenantId };
      const failing_since = formatIso(failing.since);
      if (disabled) {
        const { id: webhookId, url } = webhook;
        const { reason } = disabled;
        const host = URL.parse(url)?.host ?? null;
        log.write("warn", "webhook.disabled", { webhookId, host, tenantId, reason, failingSince: failing_since });
        const fields = { failing_since, disabled_at: formatIso(disabled.at), disabled_reason: reason };
        await tell({ ...news, type: "postrider.webhook.disabled", fields });
      } else if (isToldNow) {
        const fields = { failing_since, disables_at: formatIsoOrNull(disablesAt(failing, policy)) };
        await tell({ ...news, type: "postrider.webhook.failing", fields });
      }
    } catch (error) {
      streak.excusedMs += excusedMs;
      throw error;
    }
  }

  function begin(webhook: WebhookRef, at: number): Streak {
    const streak: Streak = {
      ...{ webhook, since: at, latest: null, wellAt: null, gone: [] },
      ...{ excusedMs: 0, isNoted: false, lookAt: at + unnotedMs },
    };
    streaks.set(webhook.webhookKey, streak);
    return streak;
  }

  /** Of one that the store knows of. When its next failure matters is not known here. */
  const known = (webhook: WebhookRef, since: number, goneInARow: number): Streak => ({
    ...{ webhook, since, latest: null, wellAt: null, gone: Array<number>(goneInARow).fill(since) },
    ...{ excusedMs: 0, isNoted: true, lookAt: since },
  });

  /**
   * It was well then, and here it may have failed since: those failures count, and nobody else knows of them. Successes of
   * this process come back so, too, and find nothing left of what was before them.
   */
  function keepLater(streak: Streak, wellAt: number): void {
    const { webhook, latest, gone } = streak;
    if (latest === null || latest.heardAt < wellAt) {
      streaks.delete(webhook.webhookKey);
      return;
    }
    streak.wellAt = wellAt;
    if (streak.since < wellAt) streak.since = latest.startedAt;
    streak.gone = gone.filter((at) => at >= wellAt);
    streak.isNoted = false;
    streak.lookAt = streak.since + unnotedMs;
  }

  async function learn(): Promise<void> {
    // Of several at once one is enough, and what it has not seen is told.
    learnAt = null;
    const successes = new Map<number, Success>();
    heardMeanwhile = successes;
    try {
      for (const { since, goneInARow, ...webhook } of await store.failingWebhooks()) {
        const success = successes.get(webhook.webhookKey);
        const streak = streaks.get(webhook.webhookKey);
        if (success) noteSuccess(known(webhook, since, goneInARow), success);
        else if (streak) streak.isNoted = true;
        else streaks.set(webhook.webhookKey, known(webhook, since, goneInARow));
      }
    } catch (error) {
      learnAt = clock.now() + learnRetryMs;
      log.write("warn", "webhook.unknown", { error: messageOf(error) });
    }
    if (heardMeanwhile === successes) heardMeanwhile = null;
  }

  function inBackground(work: Promise<void>): void {
    underWay.add(work);
    void work.then(() => underWay.delete(work));
  }

  return {
    start: learn,

    attempted(settlement) {
      if (learnAt !== null && clock.now() >= learnAt) inBackground(learn());
      const counts = hear(settlement);
      if (settlement.next.kind === "delivered") succeeded(settlement.delivery);
      else if (counts) failed(settlement);
    },

    stands({ tenantKey, webhookKey }, { as, at }) {
      const streak = streaks.get(webhookKey);
      if (as === "disabled") streaks.delete(webhookKey);
      else if (as === "well" && streak) keepLater(streak, at);
      else if (streak) streak.isNoted = true;
      else if (as === "failing") streaks.set(webhookKey, known({ tenantKey, webhookKey }, at, 0));
    },

    forget(webhookKeys) {
      for (const key of webhookKeys) streaks.delete(key);
    },

    forgetTenant(tenantKey) {
      for (const [key, { webhook }] of streaks) if (webhook.tenantKey === tenantKey) streaks.delete(key);
    },

    forgetAll() {
      streaks.clear();
      learnAt = 0;
    },

    async flush() {
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}
