import type { Database } from "bun:sqlite";
import {
  dropped,
  givesUp,
  type MailFact,
  type MailPlace,
  type MailState,
  mailRules,
  notSent,
  queuedLink,
  queuingOf,
  resetLifetimeMs,
  sent,
} from "../../domain/mail.ts";
import type { Tenant } from "../../domain/tenant.ts";
import { toPassword } from "../../domain/tenant-change.ts";
import { type MailOrder, type MailRow, type MailVerbs, toMailRow, toWaitingMail } from "../mail.ts";
import type { Connection } from "./connection.ts";
import { livingTenant } from "./held-tenants.ts";
import { livingTenants } from "./living-tenants.ts";
import { createTenantRows } from "./tenant-rows.ts";

const columns = `kind, recipient, facts, left_out as leftOut, queued_at as queuedAt, due_at as dueAt, attempts,
  sent_at as sentAt`;

export function mailVerbs({ client, writer, hold, audit }: Connection): MailVerbs {
  const { stateOf, write, queue, due, nextAfter } = createOutbox(client);
  const tenants = createTenantRows(client);
  const tenantByKey = livingTenant(client);
  const forTenant = livingTenants({ writer, hold, audit });
  const order = client.prepare(
    `insert or replace into password_reset (tenant_key, token_hash, recipient, session_version, expires_at)
     values (?1, ?2, ?3, ?4, ?5)`,
  );
  const byToken = client.prepare<
    { tenantKey: number; recipient: string; sessionVersion: number },
    [Uint8Array, number]
  >(
    `select tenant_key as tenantKey, recipient, session_version as sessionVersion from password_reset
     where token_hash = ?1 and expires_at > ?2`,
  );

  function findReset(tokenHash: Uint8Array, now: number): Tenant | null {
    const reset = byToken.get(Buffer.from(tokenHash), now);
    const tenant = reset && tenantByKey.get(reset.tenantKey);
    return tenant?.email.toLowerCase() === reset?.recipient && tenant?.sessionVersion === reset?.sessionVersion
      ? (tenant ?? null)
      : null;
  }

  return {
    queueMail: (order, now) => writer.submit<boolean>(() => queue(order, now)),

    async dueMail(now, limit) {
      const mails = due.all(now, limit).map(toWaitingMail);
      return { mails, nextAt: nextAfter.get(now)?.at ?? null };
    },

    mailSent: (said, now) =>
      writer.submit<void>(() => {
        const state = stateOf(said);
        const after = state && sent(state, said.state, now);
        if (after) write(said, after);
      }),

    mailDropped: (read, now) =>
      writer.submit<void>(() => {
        const state = stateOf(read);
        const after = state && dropped(state, read.state, now);
        if (after) write(read, after);
      }),

    mailNotSent: (said, now) =>
      writer.submit<boolean>(() => {
        const state = stateOf(said);
        const after = state && notSent(state, said.state, now);
        if (after) write(said, after);
        return !(state && after && givesUp(state, after));
      }),

    orderPasswordReset: (tenantKey, tokenHash, mail, now) =>
      forTenant<boolean>(tenantKey, undefined, ({ tenant }) => {
        if (!queue(mail, now, queuedLink)) return false;
        order.run(tenantKey, Buffer.from(tokenHash), mail.recipient, tenant.sessionVersion, now + resetLifetimeMs);
        return true;
      }),

    findPasswordReset: async (tokenHash, now) => findReset(tokenHash, now),

    usePasswordReset: (tokenHash, passwordHash, now, act) =>
      writer.submit<Tenant | null>((tx) => {
        const found = findReset(tokenHash, now);
        if (!found) return null;
        const held = hold(tx, found.key);
        tenants.change(tx, held, toPassword(held.tenant, passwordHash));
        audit.note(tx, found.id, act);
        return held.tenant;
      }),
  };
}

type Decide = (before: MailState | null, fact: MailFact, now: number) => MailState | null;

function createOutbox(client: Database) {
  const byPlace = client.prepare<MailRow, [string, string]>(
    `select ${columns} from mail where kind = ?1 and recipient = ?2`,
  );
  const countWaiting = client.prepare<{ n: number }, []>("select count(*) as n from mail where due_at is not null");
  const put = client.prepare(
    `insert or replace into mail (kind, recipient, facts, left_out, queued_at, due_at, attempts, sent_at)
     values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`,
  );
  const stateOf = ({ kind, recipient }: MailPlace): MailState | null => {
    const row = byPlace.get(kind, recipient);
    return row && toWaitingMail(row).state;
  };
  const write = (place: MailPlace, state: MailState) => {
    const { kind, recipient, facts, leftOut, queuedAt, dueAt, attempts, sentAt } = toMailRow(place, state);
    put.run(kind, recipient, facts, leftOut, queuedAt, dueAt, attempts, sentAt);
  };
  return {
    stateOf,
    write,
    queue({ fact, ...place }: MailOrder, now: number, decide: Decide = queuingOf(place.kind)): boolean {
      const before = stateOf(place);
      const isOneMore = before === null || before.dueAt === null;
      if (isOneMore && (countWaiting.get()?.n ?? 0) >= mailRules.waiting) return false;
      const after = decide(before, fact, now);
      if (after) write(place, after);
      return after !== null;
    },
    due: client.prepare<MailRow, [number, number]>(
      `select ${columns} from mail where due_at <= ?1 order by due_at limit ?2`,
    ),
    nextAfter: client.prepare<{ at: number | null }, [number]>("select min(due_at) as at from mail where due_at > ?1"),
  };
}
