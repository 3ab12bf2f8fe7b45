/** The terms of payment, in one place (rules, section 12; payments, "How it works"). Money is in kobo. */

/** One naira. */
export const kobo = 100;

/** The card verification: 100 NGN. */
export const verificationKobo = 100 * kobo;

/** The least that an upgrade charges; the excess is credited. */
export const leastUpgradeKobo = 100 * kobo;

/** The processor does not charge less than 50 NGN; a smaller amount waits for the next month's end. */
export const leastChargeKobo = 50 * kobo;

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;

/** A hosted page this old is replaced on the next visit: the processor lets its sessions expire. */
export const pageLifetimeMs = hourMs;

/** The shortest time between two new pages behind one `payment_url`. */
export const pagePauseMs = minuteMs;

/** How long an uncompleted verification stays open. */
export const verificationLifetimeMs = 30 * dayMs;

/** A client that waits for a payment, or claims to, triggers a look-up at most once in this time. */
export const pollPauseMs = minuteMs;

/** Look-ups a minute for all visitors together: a third of what Paystack allows with a test key. */
export const visitorLookUpsPerMinute = 30;

/**
 * A request that was never answered, or only by a gateway that gave up, may still be in progress at the processor, so it is
 * not repeated sooner than this. The processor refuses a reference that it knows, but does not say whether it tells two
 * requests apart that arrive at the same moment.
 */
export const resendPauseMs = 2 * minuteMs;

/** How long an upgrade that never reached the processor is kept for its client's retry. */
export const upgradePatienceMs = 10 * minuteMs;

/** How long the bank or its customer may leave a charge of a saved card open before it counts as failed. */
export const bankPatienceMs = dayMs;

/** How long a client that repeats its upgrade finds it complete; it is never told to wait longer. */
export const repeatedUpgradeMs = hourMs;

/**
 * A refund takes the processor up to ten working days. If the payment still stands after that, the refund has failed. It
 * is not requested again sooner: the processor has no idempotency key for refunds, and might make both.
 */
export const refundPatienceMs = 14 * dayMs;

/** The operator has to fix something first: the key, or the account at the processor. */
export const operatorPauseMs = hourMs;

/** How long after it was made a charge is looked up for the first time, the second … */
const earlyLookUps: readonly number[] = [minuteMs, 2 * minuteMs, 5 * minuteMs, 15 * minuteMs, hourMs];

/** As long as a page may be open, plus a day. */
const watchMs = verificationLifetimeMs + dayMs;

/**
 * When a charge is looked up next, unless a callback comes first: soon at first, then after half the time it has already
 * waited, at least once a day. Null once that has gone on long enough: an abandoned page can be paid for as long as the
 * processor keeps it open.
 */
export function nextLookUpAt(createdAt: number, lookUps: number, now: number): number | null {
  const early = earlyLookUps[lookUps];
  if (early !== undefined && createdAt + early > now) return createdAt + early;
  const age = now - createdAt;
  return age < watchMs ? now + Math.min(dayMs, Math.max(5 * minuteMs, age / 2)) : null;
}
