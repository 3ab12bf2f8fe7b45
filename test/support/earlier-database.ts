import { Database } from "bun:sqlite";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { migrate, migrations } from "../../src/store/sqlite/migrations.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";

export interface EarlierDatabase {
  /** How many migrations have been applied to it. */
  schema: number;
  /** Each with a delivery and an attempt. */
  events: number;
  /** @default 150 */
  payloadBytes?: number;
}

const accounts = 50;
const eventsInOneGo = 50_000;

/** A database as a server with an earlier schema left it, with realistic contents. */
export function makeEarlierDatabase(dataDir: string, { schema, events, payloadBytes = 150 }: EarlierDatabase): void {
  const client = new Database(join(dataDir, databaseFile), { create: true, strict: true });
  client.run("pragma auto_vacuum = incremental");
  client.run("pragma journal_mode = wal");
  client.run("pragma synchronous = off");
  migrate(client, migrations.slice(0, schema));
  for (let key = 1; key <= accounts; key++) {
    client.run(`insert into tenant (key, id, name, email, tier, password_hash, created_at)
                values (${key}, 't${key}', '', '', 'free', '', 0)`);
    client.run(`insert into webhook (key, id, tenant_key, url, name, position, created_at)
                values (${key}, 'w${key}', ${key}, 'https://receiver.example/', '', 0, 0)`);
  }
  for (let first = 1; first <= events; first += eventsInOneGo) {
    const last = Math.min(events, first + eventsInOneGo - 1);
    addEvents(client, first, last, payloadBytes);
  }
  client.run("insert or ignore into lane (id, batch, last_event_seq) select 1, 1, coalesce(max(seq), 0) from event");
  addBooks(client, schema);
  client.run("pragma wal_checkpoint(truncate)");
  client.close();
  // No server starts on a database without it; nothing is sealed in this one.
  writeFileSync(join(dataDir, "master-key"), `${randomBytes(32).toString("hex")}\n`, { mode: 0o600 });
}

/** Counters as a server keeps them, and what payments leave behind; nothing that a server would continue working on. */
function addBooks(client: Database, schema: number): void {
  client.run(`insert into tenant_usage (tenant_key, month, events_in_month, events, pending, delivered, failed)
    select tenant_key, 0, count(*), count(*), sum(state = 0), sum(state = 1), sum(state = 2) from delivery group by 1`);
  client.run("insert into login_address values (1, '192.0.2.1', 5)");
  client.run("insert into stat (tenant_key, minute, accepted, delivered, failed, attempts) values (1, 7, 3, 2, 1, 4)");
  if (schema < 2) return;
  client.run(`insert into billing_account (key, id, tenant_key, state, credit_kobo, due_at)
    values (1, 'bil_1', 1, 'active', 12, null), (2, 'bil_2', null, 'closed', 0, null)`);
  client.run(`insert into saved_card (account_key, processor, sealed, brand, last4, exp_month, exp_year, created_at)
    values (1, 'sandbox', x'0102', 'visa', '4081', '12', '2030', 5)`);
  client.run("insert into plan_period (account_key, tier, started_at, ended_at) values (1, 'pro', 5, null)");
  client.run(`insert into invoice (key, id, account_key, kind, state, lines, total_kobo, credit_used_kobo, amount_kobo, created_at)
    values (9, 'inv_1', 1, 'upgrade', 'paid', '[]', 5, 0, 5, 7)`);
  client.run("insert into invoice_day (account_key, day, invoice_key, tier) values (1, 20000, 9, 'pro')");
  client.run(`insert into charge (account_key, reference, processor, kind, state, amount_kobo, invoice_key, created_at)
    values (1, 'ref', 'sandbox', 'upgrade', 'succeeded', 5, 9, 1)`);
}

function addEvents(client: Database, first: number, last: number, payloadBytes: number): void {
  const numbers = `with recursive n(i) as (select ${first} union all select i + 1 from n where i < ${last})`;
  const account = `i % ${accounts} + 1`;
  const isPending = "i % 20 = 0";
  client.run("begin");
  client.run(`${numbers} insert into event (seq, tenant_key, id_tail, payload) select i * 1000, ${account}, randomblob(10),
    cast('{"n":' || i || ',"pad":"' || hex(randomblob(${Math.ceil(payloadBytes / 2)})) || '"}' as blob) from n`);
  client.run(`${numbers} insert into delivery (key, tenant_key, event_seq, webhook_key, state, run, attempts_in_run,
    attempts, next_attempt_at, last_attempt_at, finished_at, error_reason, replay_key) select i, ${account}, i * 1000, ${account}, iif(${isPending}, 0, 1), 1, 0, 1,
    iif(${isPending}, 4102444800000, null), i, iif(${isPending}, null, i), null, null from n`);
  client.run(`${numbers} insert into attempt (key, tenant_key, event_seq, webhook_key, number, started_at, duration_ms,
    status_code, error, response_body, replay_key) select i, ${account}, i * 1000, ${account}, 1, i, 12, 200, null,
    cast('{"ok":true}' as blob), null from n`);
  client.run("commit");
}
