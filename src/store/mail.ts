import type { Act } from "../domain/audit.ts";
import type { MailFact, MailKind, MailPlace, MailState, WaitingMail } from "../domain/mail.ts";
import type { Tenant } from "../domain/tenant.ts";

export interface MailOrder extends MailPlace {
  readonly fact: MailFact;
}

/** The outbox, and the links for setting a new password (`domain/mail.ts`). */
export interface MailVerbs {
  /** False when too many are waiting, so that this one is dropped. */
  queueMail(order: MailOrder, now: number): Promise<boolean>;
  /** Due mails, longest waiting first, and when the next one after them is due. */
  dueMail(now: number, limit: number): Promise<{ mails: WaitingMail[]; nextAt: number | null }>;
  /**
   * This verb and the next two change nothing if another server has dealt with the mail since it was read.
   * @param said the mail as it was then
   */
  mailSent(said: WaitingMail, now: number): Promise<void>;
  /** Nothing that it says holds any longer, so it was not sent. @param read as `said` */
  mailDropped(read: WaitingMail, now: number): Promise<void>;
  /** False when it is given up, or some of what it says. */
  mailNotSent(said: WaitingMail, now: number): Promise<boolean>;

  /**
   * Creates an account's link for setting a new password, replacing any earlier one, and queues the mail with it. If one for
   * the same account waits to be tried again, that has the new link from then on. False when a mail with a link was sent
   * there within the hour, or another one is waiting; nothing is written then.
   */
  orderPasswordReset(tenantKey: number, tokenHash: Uint8Array, order: MailOrder, now: number): Promise<boolean>;
  /** The account of a link that is still valid: its address is the one that the mail went to, and its sessions are the same. */
  findPasswordReset(tokenHash: Uint8Array, now: number): Promise<Tenant | null>;
  /** Sets the password by such a link, which is thereby used up, and ends every session; null when it is no longer valid. */
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
