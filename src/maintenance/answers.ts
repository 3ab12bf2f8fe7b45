import type { Clock } from "../lib/clock.ts";
import type { AttemptRef } from "../store/deliveries.ts";
import type { RetentionVerbs } from "../store/retention.ts";
import { unlessDamaged } from "../store/unless-damaged.ts";

/** How many answers that acknowledged a delivery keep their bodies, per webhook: the latest ones. */
export const keptAnswersOfWebhook = 100;

/** The rest of a long answer may still be arriving. */
const restMs = 60_000;

/** The most webhooks that are remembered; for others, more is kept than necessary. */
const knownWebhooks = 20_000;

/** Bodies dropped per transaction. */
const chunk = 100;

/** Same as for the walks of `retention.ts`: some stores keep a replay's attempts with their event, which may be old. */
const beginAgainAfterMs = 24 * 60 * 60_000;

/**
 * Drops the bodies of answers that acknowledged a delivery, once there are many: nobody reads what a receiver said each time
 * all was well, and these bodies took ten times the room of the event. It walks through the log and remembers the latest ones
 * of each webhook; newer ones push the oldest out.
 */
export interface AnswerPruner {
  /** Called when there may be something new. */
  begin(): void;
  /** @returns whether there is more to do */
  step(): Promise<boolean>;
}

export function createAnswerPruner({
  store,
  clock,
}: {
  store: Pick<RetentionVerbs, "keptAnswers" | "forgetAnswers">;
  clock: Pick<Clock, "now" | "monotonicMs">;
}): AnswerPruner {
  const latest = new Map<number, AttemptRef[]>();
  /** Those beyond the number that is kept. */
  let tooMany: AttemptRef[] = [];
  let after: AttemptRef | null = null;
  let begunAt = clock.monotonicMs();
  let isAtEnd = false;

  function note({ webhookKey, tenantKey, eventSeq, key }: AttemptRef & { readonly webhookKey: number }): void {
    const own = latest.get(webhookKey) ?? [];
    if (own.length === 0) {
      if (latest.size >= knownWebhooks) latest.delete(latest.keys().next().value ?? 0);
      latest.set(webhookKey, own);
    }
    own.push({ tenantKey, eventSeq, key });
    if (own.length > keptAnswersOfWebhook) tooMany.push(...own.splice(0, 1));
  }

  return {
    begin() {
      isAtEnd = false;
      const now = clock.monotonicMs();
      if (now - begunAt < beginAgainAfterMs) return;
      begunAt = now;
      after = null;
      latest.clear();
    },
    async step() {
      if (tooMany.length > 0) {
        const some = tooMany.slice(0, chunk);
        const ofTenant = Map.groupBy(some, ({ tenantKey }) => tenantKey);
        // What is damaged is passed over: the others' are many, and would wait behind it for good.
        await Promise.all(
          [...ofTenant].map(([tenantKey, attempts]) =>
            unlessDamaged(store.forgetAnswers(tenantKey, attempts), undefined),
          ),
        );
        tooMany = tooMany.slice(some.length);
        return true;
      }
      if (isAtEnd) return false;
      const now = clock.now();
      const found = await store.keptAnswers({ after, before: now - restMs, now });
      for (const attempt of found.attempts) note(attempt);
      after = found.lookedTo && placeOf(found.lookedTo);
      isAtEnd = !found.isMore;
      return found.isMore || tooMany.length > 0;
    },
  };
}

const placeOf = ({ tenantKey, eventSeq, key }: AttemptRef): AttemptRef => ({ tenantKey, eventSeq, key });
