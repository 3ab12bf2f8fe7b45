import { and, eq, gt, isNull } from "drizzle-orm";
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
import { noteAct } from "./audit.ts";
import type { Connection } from "./connection.ts";
import { lockTenant, tenantColumns } from "./held-tenants.ts";
import { livingTenants } from "./living-tenants.ts";
import { mail, passwordReset } from "./mail-schema.ts";
import type { Transaction } from "./pool.ts";
import * as t from "./schema.ts";
import { changeTenant } from "./tenant-rows.ts";

const columns = `kind, recipient, facts, left_out as "leftOut", queued_at::float8 as "queuedAt", due_at::float8 as "dueAt",
  attempts, sent_at::float8 as "sentAt"`;

const dueText = `select ${columns} from mail where due_at <= $1::bigint order by due_at limit $2::int`;
const nextText = "select min(due_at)::float8 as at from mail where due_at > $1::bigint";

const resetText = `select tenant_key::float8 as "tenantKey", recipient, session_version as "sessionVersion"
  from password_reset where token_hash = $1 and expires_at > $2::bigint`;

interface Reset {
  readonly tenantKey: number;
  readonly recipient: string;
  readonly sessionVersion: number;
}

const works = ({ recipient, sessionVersion }: Reset, tenant: Tenant): boolean =>
  tenant.email.toLowerCase() === recipient && tenant.sessionVersion === sessionVersion;

export function mailVerbs({ pool, writes }: Connection): MailVerbs {
  const forTenant = livingTenants({ writes });

  return {
    queueMail: (order, now) => writes.submit((tx) => queue(tx, order, now)),

    async dueMail(now, limit) {
      const [rows, [next]] = await Promise.all([
        pool.read<MailRow>(dueText, [now, limit]),
        pool.read<{ at: number | null }>(nextText, [now]),
      ]);
      return { mails: rows.map(toWaitingMail), nextAt: next?.at ?? null };
    },

    mailSent: (said, now) =>
      writes.submit(async (tx) => {
        const state = await stateOf(tx, said);
        const after = state && sent(state, said.state, now);
        if (after) await write(tx, said, after);
      }),

    mailDropped: (read, now) =>
      writes.submit(async (tx) => {
        const state = await stateOf(tx, read);
        const after = state && dropped(state, read.state, now);
        if (after) await write(tx, read, after);
      }),

    mailNotSent: (said, now) =>
      writes.submit(async (tx) => {
        const state = await stateOf(tx, said);
        const after = state && notSent(state, said.state, now);
        if (after) await write(tx, said, after);
        return !(state && after && givesUp(state, after));
      }),

    orderPasswordReset: (tenantKey, tokenHash, order, now) =>
      forTenant(tenantKey, undefined, async ({ tenant: { sessionVersion } }, tx) => {
        if (!(await queue(tx, order, now, queuedLink))) return false;
        const { recipient } = order;
        const reset = { tokenHash, recipient, sessionVersion, expiresAt: now + resetLifetimeMs };
        await tx.db
          .insert(passwordReset)
          .values({ tenantKey, ...reset })
          .onConflictDoUpdate({ target: passwordReset.tenantKey, set: reset });
        return true;
      }),

    async findPasswordReset(tokenHash, now) {
      const { tenantKey, recipient, sessionVersion } = passwordReset;
      const [found] = await pool.db
        .select({ tenant: tenantColumns, reset: { tenantKey, recipient, sessionVersion } })
        .from(passwordReset)
        .innerJoin(t.tenant, eq(t.tenant.key, tenantKey))
        .where(
          and(eq(passwordReset.tokenHash, tokenHash), gt(passwordReset.expiresAt, now), isNull(t.tenant.deletedAt)),
        );
      return found && works(found.reset, found.tenant) ? found.tenant : null;
    },

    usePasswordReset: (tokenHash, passwordHash, now, act) =>
      writes.submit(async (tx) => {
        const [found] = await tx.run<Reset>(resetText, [tokenHash, now]);
        const tenant = found && (await lockTenant(tx, found.tenantKey));
        // Anyone who used it meanwhile had the account locked.
        const [reset] = tenant ? await tx.run<Reset>(resetText, [tokenHash, now]) : [];
        if (!tenant || !reset || !works(reset, tenant)) return null;
        const held = { tenant };
        await changeTenant(tx, held, toPassword(tenant, passwordHash));
        await noteAct(tx, tenant.id, act);
        return held.tenant;
      }),
  };
}

async function stateOf({ run }: Transaction, { kind, recipient }: MailPlace): Promise<MailState | null> {
  const text = `select ${columns} from mail where kind = $1 and recipient = $2 for update`;
  const [row] = await run<MailRow>(text, [kind, recipient]);
  return row ? toWaitingMail(row).state : null;
}

/** A row that did not exist may have been inserted by someone else by now: that is a violation, and the verb runs again. */
async function write({ db }: Transaction, place: MailPlace, state: MailState, isNew = false): Promise<void> {
  const row = toMailRow(place, state);
  const insert = db.insert(mail).values(row);
  await (isNew ? insert : insert.onConflictDoUpdate({ target: [mail.kind, mail.recipient], set: row }));
}

async function queue(
  tx: Transaction,
  { fact, ...place }: MailOrder,
  now: number,
  decide: (before: MailState | null, fact: MailFact, now: number) => MailState | null = queuingOf(place.kind),
): Promise<boolean> {
  const before = await stateOf(tx, place);
  if (before === null || before.dueAt === null) {
    const [waiting] = await tx.run<{ n: number }>("select count(*)::int as n from mail where due_at is not null");
    if ((waiting?.n ?? 0) >= mailRules.waiting) return false;
  }
  const after = decide(before, fact, now);
  if (after) await write(tx, place, after, before === null);
  return after !== null;
}
