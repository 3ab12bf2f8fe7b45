import type { Act } from "../domain/audit.ts";
import type { MailFact, MailKind, MailPlace, MailState, WaitingMail } from "../domain/mail.ts";
import type { Tenant } from "../domain/tenant.ts";

export interface MailOrder extends MailPlace {
  readonly fact: MailFact;
}

/** The outbox and the links that set a new password (`domain/mail.ts`). */
export interface MailVerbs {
  /** False: so many wait that this one is left out. */
  queueMail(order: MailOrder, now: number): Promise<boolean>;
  /** What is due, the longest waiting first, and when the next one after it is. */
  dueMail(now: number, limit: number): Promise<{ mails: WaitingMail[]; nextAt: number | null }>;
  /** @param said the mail as it was when it was read */
  mailSent(said: WaitingMail, now: number): Promise<void>;
  /** @returns whether it is tried again */
  mailNotSent(said: WaitingMail, now: number): Promise<boolean>;

  /**
   * Makes the link of an account that sets a new password, in place of an earlier one, and queues the mail with it. False: a mail with
   * one went there within the hour or waits, and nothing is written.
   */
  orderPasswordReset(tenantKey: number, tokenHash: Uint8Array, order: MailOrder, now: number): Promise<boolean>;
  /** The account of a link that works still; its address is the one that the mail went to, and its sessions are the same. */
  findPasswordReset(tokenHash: Uint8Array, now: number): Promise<Tenant | null>;
  /** Sets the password by such a link, which works no more, and ends every session; null when it does not work any more. */
  usePasswordReset(tokenHash: Uint8Array, passwordHash: string, now: number, act: Act): Promise<Tenant | null>;
}

export interface MailRow {
  kind: string;
  recipient: string;
  /** JSON. */
  facts: string;
  leftOut: number;
  queuedAt: number;
  dueAt: number | null;
  attempts: number;
  sentAt: number | null;
}

export const toWaitingMail = ({ kind, recipient, facts, ...rest }: MailRow): WaitingMail => ({
  kind: kind as MailKind,
  recipient,
  state: { ...rest, facts: JSON.parse(facts) as MailFact[] },
});

export const toMailRow = ({ kind, recipient }: MailPlace, { facts, ...rest }: MailState): MailRow => ({
  kind,
  recipient,
  facts: JSON.stringify(facts),
  ...rest,
});
