/**
 * The outbox: for each kind of mail and each recipient, everything that waits to be said, in one mail.
 *
 *             ┌───────────────── sent, and nothing came meanwhile ───────────────┐
 *             ▼                                                                  │
 *   nothing waits ──queue──▶ due: at once, or an hour after the last one ──▶ being sent ──▶ sent: what came meanwhile is due
 *             ▲                  ▲    └──queue──▶ says one thing more                │                 an hour later
 *             │                  └──────── refused: a minute later, then two … 60 ───┤
 *             ├────────── refused a day after the last of it was queued ─────────────┤
 *             └───────────── nothing of it holds any longer: no mail was sent ───────┘
 */
export const mailKinds = [
  "password.reset",
  "password.reset_by_contact",
  "webhook.failing",
  "webhook.disabled",
  "charge.failed",
  "backup.failed",
  "disk.low",
  "queue.growing",
] as const;
export type MailKind = (typeof mailKinds)[number];

/** Rules, section 16. */
export const mailRules = {
  /** Time between two mails of one kind to one recipient. */
  intervalMs: 60 * 60 * 1000,
  /** Time after which a mail that cannot be sent is given up. */
  lifetimeMs: 24 * 60 * 60 * 1000,
  /** Facts that one mail states; of any more it gives only the number. */
  facts: 20,
  /** Mails that may wait, in total. */
  waiting: 10_000,
} as const;

/**
 * What a mail says, in the fields of its kind (`src/mail/letters.ts`). It may wait on disk, so secrets in it are sealed. One
 * that was added to a mail has `queuedAt`, when that was.
 */
export type MailFact = Readonly<Record<string, string | number | null>>;

/** What is known about one kind of mail to one recipient. */
export interface MailState {
  /** What waits to be said, the oldest first. */
  readonly facts: readonly MailFact[];
  /** How many more were left out. */
  readonly leftOut: number;
  /** When the first of them was queued. */
  readonly queuedAt: number;
  /** Null: nothing waits. */
  readonly dueAt: number | null;
  /** Failed attempts to send what waits. */
  readonly attempts: number;
  /** Null: none was sent yet. If one was given up or dropped before any was sent, this is 0. */
  readonly sentAt: number | null;
}

export interface MailPlace {
  readonly kind: MailKind;
  /** An address in lower case: however it is written, it is the same inbox. */
  readonly recipient: string;
}

export interface WaitingMail extends MailPlace {
  readonly state: MailState;
}

const firstRetryMs = 60_000;
const longestRetryMs = 60 * 60_000;

const nothing: MailState = { facts: [], leftOut: 0, queuedAt: 0, dueAt: null, attempts: 0, sentAt: null };

const earliestAfter = (sentAt: number | null, now: number): number =>
  sentAt === null ? now : Math.max(now, sentAt + mailRules.intervalMs);

/** With one more fact to say. A mail that already waits takes it along, so an outage with many facts is one mail. */
export function queued(before: MailState | null, fact: MailFact, now: number): MailState {
  const { facts, leftOut, dueAt, sentAt, ...rest } = before ?? nothing;
  if (dueAt !== null) {
    const isFull = facts.length >= mailRules.facts;
    const all = isFull ? facts : [...facts, { ...fact, queuedAt: now }];
    return { ...rest, dueAt, sentAt, facts: all, leftOut: leftOut + (isFull ? 1 : 0) };
  }
  return { facts: [fact], leftOut: 0, queuedAt: now, dueAt: earliestAfter(sentAt, now), attempts: 0, sentAt };
}

/** Mails of these kinds say how things stand, so only the latest is worth saying, and only while it is so. */
const standings = ["disk.low", "queue.growing"] as const satisfies MailKind[];
export type Standing = (typeof standings)[number];

/** Whether mails of this kind say how things stand, rather than what has happened. */
export const isStanding = (kind: MailKind): kind is Standing => standings.some((standing) => standing === kind);

const isOver = (since: number, now: number): boolean => now - since >= mailRules.lifetimeMs;

/**
 * Whether it is no news how things stood: mail may have waited for a server that was off, or have come out of a backup. Facts
 * that earlier versions queued have no time of their own.
 */
export const isOld = ({ at }: MailFact, { queuedAt }: MailState, now: number): boolean =>
  isOver(Number(at ?? queuedAt), now);

/**
 * One that comes while the one before is being sent is not sent as well: within an hour that would say nothing new. It does
 * not share the fate of one that is to be given up.
 */
function queuedStanding(before: MailState | null, fact: MailFact, now: number): MailState {
  const kept = before && isOver(before.queuedAt, now) ? { ...before, dueAt: null } : before;
  return { ...queued(kept, fact, now), facts: [fact], leftOut: 0 };
}

/** How one more fact of this kind is queued. */
export const queuingOf = (kind: MailKind) => (isStanding(kind) ? queuedStanding : queued);

/**
 * A link for a new password is asked for: it is sent unless one went to the recipient within the hour, or is waiting to. One
 * that waits to be tried again is replaced by a newer one for the same account, and tried within a minute: at the end of a
 * longer wait the newer one, too, would have expired. Null: nothing changes. One that is due is left alone: it may be on its
 * way already.
 */
export function queuedLink(before: MailState | null, fact: MailFact, now: number): MailState | null {
  const { dueAt = null, sentAt = null, facts = [] } = before ?? {};
  if (before && dueAt !== null) {
    const isReplaced = dueAt > now && facts.every(({ tenantId }) => tenantId === fact.tenantId);
    return isReplaced ? { ...before, facts: [fact], queuedAt: now, dueAt: Math.min(dueAt, now + firstRetryMs) } : null;
  }
  return sentAt !== null && earliestAfter(sentAt, now) > now ? null : queued(before, fact, now);
}

/**
 * Whether it is still the mail that was read, whatever was added to it. A server that was cut off notes late what became of
 * one; if another server has sent it by then, what waits now was queued later.
 */
const isStill = (state: MailState, read: MailState): boolean => state.queuedAt === read.queuedAt;

/** @param said what was sent; the state may have more by now. Null: nothing changes */
export const sent = (state: MailState, said: MailState, now: number): MailState | null =>
  without(state, said, now, now);

/**
 * Nothing that it says holds any longer, so no mail was sent: the next one does not wait for it. Null: nothing changes.
 * @param read as `said`
 */
export const dropped = (state: MailState, read: MailState, now: number): MailState | null =>
  without(state, read, state.sentAt ?? 0, now);

function without(state: MailState, said: MailState, sentAt: number, now: number): MailState | null {
  if (!isStill(state, said)) return null;
  const facts = state.facts.slice(said.facts.length);
  const leftOut = state.leftOut - said.leftOut;
  if (facts.length === 0 && leftOut === 0) return { ...nothing, sentAt };
  return { facts, leftOut, queuedAt: now, dueAt: earliestAfter(sentAt, now), attempts: 0, sentAt };
}

/** Null: nothing changes. @param said as of `sent` */
export function notSent(state: MailState, said: MailState, now: number): MailState | null {
  if (!isStill(state, said)) return null;
  const pauseMs = Math.min(longestRetryMs, firstRetryMs * 2 ** state.attempts);
  const tried = { ...state, attempts: state.attempts + 1, dueAt: now + pauseMs };
  if (!isOver(state.queuedAt, now)) return tried;
  // What was added minutes ago has not been tried for a day yet.
  const since = ({ queuedAt }: MailFact) => Number(queuedAt ?? state.queuedAt);
  const facts = state.facts.filter((fact) => !isOver(since(fact), now));
  const [first] = facts;
  return first ? { ...tried, facts, queuedAt: since(first) } : { ...nothing, sentAt: state.sentAt ?? 0 };
}

/** Whether `notSent` has given something up. */
export const givesUp = (before: MailState, after: MailState): boolean =>
  after.dueAt === null || after.facts.length < before.facts.length;

/** Accounts created without an address have one that ends like this, and leads nowhere (RFC 2606). */
export const canGetMail = (email: string): boolean => !/\.invalid$/i.test(email);

/** How long a link that sets a new password works. */
export const resetLifetimeMs = 60 * 60 * 1000;
