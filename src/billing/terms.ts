/** What payments hold to, in one place (rules, section 12; payments, "How it works"). Money is in kobo. */

/** One naira. */
export const kobo = 100;

/** The card verification: 100 NGN. */
export const verificationKobo = 100 * kobo;

/** The least that an upgrade charges; the excess is credited. */
export const leastUpgradeKobo = 100 * kobo;

/** Less than 50 NGN the processor does not charge; it waits for the next month's end. */
export const leastChargeKobo = 50 * kobo;

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;

/** A hosted page is replaced when somebody comes after so long: the processor lets its sessions expire. */
export const pageLifetimeMs = hourMs;

/** The shortest time between two new pages behind one `payment_url`. */
export const pagePauseMs = minuteMs;

/** How long an uncompleted verification stays open. */
export const verificationLifetimeMs = 30 * dayMs;

/** Whoever waits for a payment, or says so, has it looked up at most once in so long. */
export const pollPauseMs = minuteMs;

/** Look-ups a minute for all visitors together: a third of what Paystack takes with a test key. */
export const visitorLookUpsPerMinute = 30;

/**
 * A request whose answer never came may still be at work at the processor; it is not repeated before so long. The
 * processor refuses a reference that it knows, but whether two at the very same moment are told apart, it does not say.
 */
export const resendPauseMs = 2 * minuteMs;

/** How long an upgrade that never reached the processor is kept for its client's retry. */
export const upgradePatienceMs = 10 * minuteMs;

/** How long the bank or its customer may leave a charge of a saved card open before it counts as failed. */
export const bankPatienceMs = dayMs;

/** A client that was told to repeat its upgrade finds it complete for so long; it is never told to wait longer. */
export const repeatedUpgradeMs = hourMs;

/** The operator has to fix something first: the key, or the account at the processor. */
export const operatorPauseMs = hourMs;

/** How long after its making a charge is looked up, the first time, the second … */
const earlyLookUps: readonly number[] = [minuteMs, 2 * minuteMs, 5 * minuteMs, 15 * minuteMs, hourMs];

/** As long as a page may be open, and a day. */
const watchMs = verificationLifetimeMs + dayMs;

/**
 * When a charge is looked up next, should no callback come before: soon at first, then each time half as long again as it
 * has waited, at least once a day. Null when it has been long enough: a page that was left behind can be paid for as long
 * as the processor keeps it open.
 */
export function nextLookUpAt(createdAt: number, lookUps: number, now: number): number | null {
  const early = earlyLookUps[lookUps];
  if (early !== undefined && createdAt + early > now) return createdAt + early;
  const age = now - createdAt;
  return age < watchMs ? now + Math.min(dayMs, Math.max(5 * minuteMs, age / 2)) : null;
}
