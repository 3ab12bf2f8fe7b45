import type { Clock } from "../lib/clock.ts";
import type { AttemptRef } from "../store/deliveries.ts";
import type { RetentionVerbs } from "../store/retention.ts";

/** Of the answers that acknowledged a delivery, so many of each webhook keep their bodies: the latest ones. */
export const keptAnswersOfWebhook = 100;

/** The rest of a long answer may still be on its way. */
const restMs = 60_000;

/** Most webhooks of which something is remembered; of others more is kept than has to be. */
const knownWebhooks = 20_000;

/** Bodies that go in one transaction. */
const chunk = 100;

/** As the walks of `retention.ts` do: attempts of a replay lie, in some stores, with the event from long ago. */
const beginAgainAfterMs = 24 * 60 * 60_000;

/**
 * Lets the bodies of answers go that acknowledged a delivery and have become many: nobody reads what a receiver said each time
 * that all was well, and it took ten times the room of the event. It walks through the log and knows the latest ones of each
 * webhook; what comes after them pushes the oldest out.
 */
export interface AnswerPruner {
  /** There may be something new. */
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
  /** More than are kept. */
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
        await Promise.all([...ofTenant].map(([tenantKey, attempts]) => store.forgetAnswers(tenantKey, attempts)));
        tooMany = tooMany.slice(some.length);
        return true;
      }
      if (isAtEnd) return false;
      const found = await store.keptAnswers({ after, before: clock.now() - restMs });
      for (const attempt of found.attempts) note(attempt);
      after = found.lookedTo && placeOf(found.lookedTo);
      isAtEnd = !found.isMore;
      return found.isMore || tooMany.length > 0;
    },
  };
}

const placeOf = ({ tenantKey, eventSeq, key }: AttemptRef): AttemptRef => ({ tenantKey, eventSeq, key });
