import type { DeliveryRates } from "../../../../src/delivery/queue/account-pace.ts";
import type { FakeClock } from "../../../support/fake-clock.ts";

/** Ten seconds' worth, as the rules promise. */
const burstSeconds = 10;
/** An account that has used up its tokens gets the next ones together. */
const refillSeconds = 0.1;
/** Of times that are fractions of a millisecond. */
const hair = 1e-6;

/** What an account may send by now, kept apart from the program. A restart forgets it, as the program does. */
export function createPaceModel(clock: FakeClock, rate: number | null) {
  const buckets = new Map<number, { tokens: number; at: number }>();

  function tokensOf(tenantKey: number): number {
    if (rate === null) return Number.POSITIVE_INFINITY;
    const bucket = buckets.get(tenantKey);
    if (!bucket) return burstSeconds * rate;
    return Math.min(burstSeconds * rate, bucket.tokens + ((clock.monotonicMs() - bucket.at) / 1000) * rate);
  }

  return {
    rates: { free: rate, pro: rate, business: rate, enterprise: rate } satisfies DeliveryRates,
    /** Notes an attempt. @returns false when there was no token for it */
    take(tenantKey: number): boolean {
      const tokens = tokensOf(tenantKey);
      if (rate !== null) buckets.set(tenantKey, { tokens: tokens - 1, at: clock.monotonicMs() });
      return tokens >= 1 - hair;
    },
    /** It is right to wait: the next tokens have not come together yet. */
    isSpent: (tenantKey: number) => tokensOf(tenantKey) < Math.max(1, (rate ?? 0) * refillSeconds) + hair,
    forget: () => buckets.clear(),
  };
}

export type PaceModel = ReturnType<typeof createPaceModel>;
