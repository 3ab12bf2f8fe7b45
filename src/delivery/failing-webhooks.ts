import type { WebhookStands } from "../domain/change.ts";
import { type DisablePolicy, disablesAt, isAnsweredGone, mostGoneInARow } from "../domain/failing-webhook.ts";
import { hearingOf, isOwnFailure, isOwnOutage, type Silence, silenceAfter } from "../domain/own-outage.ts";
import type { WebhookRef } from "../domain/webhook.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import { formatIso, formatIsoOrNull } from "../lib/iso-time.ts";
import { createKeyedLock } from "../lib/keyed-lock.ts";
import type { Log } from "../lib/log.ts";
import { createRecent } from "../lib/recent.ts";
import type { Settlement } from "../store/deliveries.ts";
import type { Store } from "../store/store.ts";
import { announceWebhook, type WebhookHub } from "../stream/webhook-change.ts";
import type { TellAccount } from "./own-events.ts";

/** What is known here about each webhook whose latest attempt failed. About 300 bytes each. */
interface Streak {
  readonly webhook: WebhookRef;
  since: number;
  /**
   * The latest failure seen by this process: when it began, and when we heard of it. Null: only other processes have seen one.
   */
  latest: { readonly startedAt: number; readonly heardAt: number } | null;
  /** The latest success reported after a failure had begun; null: none. */
  wellAt: number | null;
  /** When we heard of each delivery in the current row of 410 answers. */
  gone: readonly number[];
  /** Time lost to outages of our own since its failures were last noted. */
  excusedMs: number;
  /** The store knows that it is failing. */
  isNoted: boolean;
  /** Until then, another failure changes nothing unless it is a 410. */
  lookAt: number;
}

interface Success {
  readonly tenantId: string;
  readonly at: number;
}

/**
 * A webhook that fails now and then but recovers within this time is never written to the store: a success of a healthy
 * one, and most failures, cost no more than a lookup in memory.
 */
const unnotedMs = 60_000;

/**
 * Forgotten webhooks and accounts that are remembered as such, each about 100 bytes: an attempt that was under way by then ends
 * later, and nothing would ever forget it again.
 */
const forgottenLimit = 10_000;

/** Pause after a failed read of the store. */
const learnRetryMs = 5_000;

export interface FailingWebhooks {
  /**
   * Learns which webhooks are failing, and tries again later if the store is unavailable. It must be told of every change
   * from now on.
   */
  start(): Promise<void>;
  /** Told of every attempt, once it is on disk. */
  attempted(settlement: Settlement): void;
  /** What the store knows about a webhook, whichever process found it out. The news may arrive after that of later attempts. */
  stands(webhook: WebhookRef, standing: WebhookStands): void;
  forget(webhookKeys: readonly number[]): void;
  forgetTenant(tenantKey: number): void;
  /** Forgets everything: what other processes have noted in the meantime is unknown. */
  forgetAll(): void;
  /** Resolves when everything it was told has been noted. */
  flush(): Promise<void>;
}

export interface FailingWebhooksDeps {
  store: Pick<Store, "failingWebhooks" | "noteFailures" | "noteSuccess">;
  clock: Clock;
  log: Log;
  hub: WebhookHub;
  policy: DisablePolicy;
  tell: TellAccount;
  /** Whether a delivery leaves this process: one to an inbox says nothing about the network. */
  isOutbound(delivery: Settlement["delivery"]): boolean;
}

/** Watches which webhooks fail, and has the store note it when it matters (`domain/failing-webhook.ts`). */
export function createFailingWebhooks(deps: FailingWebhooksDeps): FailingWebhooks {
  const { store, clock, log, hub, policy, tell, isOutbound } = deps;
  const streaks = new Map<number, Streak>();
  let forgottenWebhooks = createRecent<number, true>(forgottenLimit);
  let forgottenTenants = createRecent<number, true>(forgottenLimit);
  const inTurn = createKeyedLock<number>();
  const underWay = new Set<Promise<void>>();
  let silence: Silence | null = null;
  /** How many silences have ended. */
  let silencesOver = 0;
  /** Webhooks whose latest attempt got no answer, and how many silences had ended when that began. */
  const unanswered = new Map<number, { readonly tenantKey: number; readonly silencesOver: number }>();
  /** When to ask the store which webhooks are failing; null: already known. */
  let learnAt: number | null = 0;
  /** Successes since the store was asked, which its answer may not include. Null: it is not being asked. */
  let heardMeanwhile: Map<number, Success> | null = null;

  const isForgotten = ({ tenantKey, webhookKey }: WebhookRef): boolean =>
    forgottenWebhooks.get(webhookKey) !== undefined || forgottenTenants.get(tenantKey) !== undefined;

  function remember(streak: Streak): Streak {
    if (!isForgotten(streak.webhook)) streaks.set(streak.webhook.webhookKey, streak);
    return streak;
  }

  /** One note at a time per webhook: a success is never noted before the failure that it ends. */
  function note(webhookKey: number, action: () => Promise<void>): void {
    // What could not be noted now is noted again with the next attempt.
    const report = (error: unknown) => log.write("warn", "webhook.unnoted", { error: messageOf(error) });
    inBackground(inTurn.run(webhookKey, action).catch(report));
  }

  /** @returns whether a failure counts against the receiver */
  function hear({ delivery, attempt }: Settlement): boolean {
    const { tenantKey, webhookKey, url } = delivery;
    const before = silence;
    // An answer, as nearly always: there is nothing else to find out.
    if (before === null && attempt.statusCode !== null) {
      unanswered.delete(webhookKey);
      return true;
    }
    if (!isOutbound(delivery)) return true;
    const host = URL.parse(url)?.hostname ?? "";
    const known = unanswered.get(webhookKey);
    const isDownByItself = known !== undefined && known.silencesOver < silencesOver;
    silence = silenceAfter(before, { ...attempt, host, isDownByItself });
    const heard = hearingOf(attempt.errorCode);
    if (heard === "answer") unanswered.delete(webhookKey);
    else if (heard === "silence" && !known && !isForgotten(delivery))
      unanswered.set(webhookKey, { tenantKey, silencesOver });
    if (before && !silence) {
      silencesOver += 1;
      if (isOwnOutage(before)) excuse(before);
    }
    const isOutage = isOwnOutage(silence);
    if (silence && isOutage && !isOwnOutage(before)) {
      log.write("warn", "network.silent", { since: formatIso(silence.since) });
    }
    return !isOutage && !isOwnFailure(attempt.errorCode);
  }

  /** What began in the outage begins at its last attempt; what had begun before is credited the time for which it is proven. */
  function excuse({ since: from, until }: Silence): void {
    log.write("info", "network.answers", { since: formatIso(from) });
    for (const streak of streaks.values()) {
      if (streak.isNoted) streak.excusedMs += Math.max(0, until - Math.max(from, streak.since));
      else if (streak.since < from) streak.since += until - from;
      else streak.since = Math.max(streak.since, until);
    }
  }

  function succeeded({ tenantId, webhookKey }: Settlement["delivery"]): void {
    const success = { tenantId, at: clock.now() };
    heardMeanwhile?.set(webhookKey, success);
    const streak = streaks.get(webhookKey);
    if (!streak) return;
    streaks.delete(webhookKey);
    // It came after the failures that are known here, also if the clock was set back in between.
    noteSuccess(streak, { tenantId, at: Math.max(success.at, streak.since) });
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
        // So that the next success is noted.
        const later = streaks.get(webhookKey);
        if (later) later.isNoted = true;
        else remember(known(streak.webhook, streak.since, 0));
        throw error;
      }
    });
  }

  function failed({ delivery, attempt, next }: Settlement): void {
    const { tenantKey, tenantId, webhookKey } = delivery;
    const at = attempt.startedAt;
    const streak = streaks.get(webhookKey) ?? begin({ tenantKey, webhookKey }, at);
    const heardAt = clock.now();
    if (at < streak.since && !streak.isNoted) moveStart(streak, at);
    const before = streak.gone.length;
    const isGone = isAnsweredGone(attempt.statusCode) && next.kind === "failed";
    streak.latest = { startedAt: at, heardAt };
    streak.gone = isGone ? [...streak.gone, heardAt].slice(-mostGoneInARow) : [];
    const isRowKnown = Math.max(before, streak.gone.length) > 1 && before !== streak.gone.length;
    if (at < streak.lookAt && !isRowKnown) return;
    // Failures that arrive while this one is being noted wait for the next time.
    streak.lookAt = at + unnotedMs;
    note(webhookKey, () => noteFailures(streak, tenantId, at));
  }

  async function noteFailures(streak: Streak, tenantId: string, at: number): Promise<void> {
    const { webhook: ref, since, wellAt, gone, excusedMs } = streak;
    streak.excusedMs = 0;
    try {
      const noted = await store.noteFailures(ref, { since, at, gone, excusedMs }, policy);
      if (!noted) return;
      streak.isNoted = true;
      // Otherwise a success was reported in the meantime, and what was noted is history.
      if (streak.wellAt === wellAt) {
        streak.since = noted.failing.since;
        streak.lookAt = noted.lookAgainAt;
      }
      const { webhook, failing, disabled, isNew, isToldNow } = noted;
      // Another process got another answer in between.
      const lost = gone.at(-1 - failing.goneInARow);
      if (lost !== undefined) streak.gone = streak.gone.filter((heardAt) => heardAt > lost);
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

  /** An attempt that began earlier has ended later, or the clock was set back. */
  function moveStart(streak: Streak, at: number): void {
    streak.since = at;
    streak.lookAt = at + unnotedMs;
  }

  function begin(webhook: WebhookRef, at: number): Streak {
    return remember({
      ...{ webhook, since: at, latest: null, wellAt: null, gone: [] },
      ...{ excusedMs: 0, isNoted: false, lookAt: at + unnotedMs },
    });
  }

  /** A streak that the store knows of. When its next failure will matter is not known here. */
  const known = (webhook: WebhookRef, since: number, goneInARow: number): Streak => ({
    ...{ webhook, since, latest: null, wellAt: null, gone: Array<number>(goneInARow).fill(since) },
    ...{ excusedMs: 0, isNoted: true, lookAt: since },
  });

  /**
   * The webhook was well at that time, but may have failed here since: those failures count, and no other process knows
   * of them. This process's own successes come back this way too, and find nothing left from before them.
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

  /** Others have noted that it is failing, since another time perhaps. */
  function learnOf(streak: Streak, since: number): void {
    if (!streak.isNoted) streak.since = since;
    streak.isNoted = true;
  }

  async function learn(): Promise<void> {
    // One read is enough for several callers, and changes that it does not see are reported to us.
    learnAt = null;
    const successes = new Map<number, Success>();
    heardMeanwhile = successes;
    try {
      for (const { since, goneInARow, ...webhook } of await store.failingWebhooks()) {
        const success = successes.get(webhook.webhookKey);
        const streak = streaks.get(webhook.webhookKey);
        if (success) noteSuccess(known(webhook, since, goneInARow), success);
        else if (streak) learnOf(streak, since);
        else remember(known(webhook, since, goneInARow));
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
      else if (streak) learnOf(streak, at);
      else if (as === "failing") remember(known({ tenantKey, webhookKey }, at, 0));
    },

    forget(webhookKeys) {
      for (const key of webhookKeys) {
        forgottenWebhooks.set(key, true);
        streaks.delete(key);
        unanswered.delete(key);
      }
    },

    forgetTenant(tenantKey) {
      forgottenTenants.set(tenantKey, true);
      for (const [key, { webhook }] of streaks) if (webhook.tenantKey === tenantKey) streaks.delete(key);
      for (const [key, each] of unanswered) if (each.tenantKey === tenantKey) unanswered.delete(key);
    },

    forgetAll() {
      streaks.clear();
      unanswered.clear();
      forgottenWebhooks = createRecent(forgottenLimit);
      forgottenTenants = createRecent(forgottenLimit);
      learnAt = 0;
    },

    async flush() {
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}
