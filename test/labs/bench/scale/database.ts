import { Database } from "bun:sqlite";
import {
  closeSync,
  cpSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { databaseFile } from "../../../../src/store/sqlite/open.ts";
import { removeAtEnd } from "../cleanup.ts";
import { say, showProgress } from "../output.ts";
import { webhookUrl } from "./accounts.ts";
import { createHistory, type History, tenants } from "./history.ts";
import { seed } from "./seed.ts";

/** What a seeded folder says of itself, written last: one without it was interrupted. */
interface Manifest {
  version: number;
  events: number;
  endsAt: number;
}

/** To be raised when the history changes. */
const manifestVersion = 1;
const manifestFile = "seeded.json";

/** The server's data directory within a folder of ours. */
export const dataIn = (folder: string) => join(folder, "data");
const databaseIn = (folder: string) => join(dataIn(folder), databaseFile);

/** A seeded database of this size: the one that is there, or a new one. */
export async function provideSeeded(parent: string, events: number): Promise<{ folder: string; history: History }> {
  const folder = join(parent, `seeded-${events}`);
  const known = readManifest(folder);
  if (known?.version === manifestVersion && known.events === events) {
    say(`seeded        ${events} events are there already`);
    return { folder, history: createHistory(events, known.endsAt) };
  }
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const endsAt = Math.floor(Date.now() / 1000) * 1000;
  const history = createHistory(events, endsAt);
  const startedMs = performance.now();
  await seed(dataIn(folder), history);
  const seconds = (performance.now() - startedMs) / 1000;
  showProgress("examining what was seeded");
  examine(folder);
  writeFileSync(
    join(folder, manifestFile),
    JSON.stringify({ version: manifestVersion, events, endsAt } satisfies Manifest),
  );
  say(
    `seeded        ${events} events in ${seconds.toFixed(0)} s, ${gigabytes(sizeOf(folder))}, counters and rows agree`,
  );
  return { folder, history };
}

function readManifest(folder: string): Manifest | null {
  const path = join(folder, manifestFile);
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Manifest) : null;
}

export const sizeOf = (folder: string): number => statSync(databaseIn(folder)).size;
export const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(2)} GB`;

/** A copy to write to, whose webhooks lead to this receiver. It goes when the bench ends, and before if asked. */
export function copyOf(folder: string, receiverPort: number): { folder: string; remove(): void } {
  const copy = `${folder}-copy`;
  rmSync(copy, { recursive: true, force: true });
  removeAtEnd(copy);
  showProgress(`copying ${gigabytes(sizeOf(folder))}`);
  cpSync(folder, copy, { recursive: true });
  change(copy, (client) => {
    const setUrl = client.prepare("update webhook set url = ?2 where key = ?1");
    const keys = client.query<{ key: number }, []>("select key from webhook order by key").all();
    if (keys.length !== tenants) throw new Error(`${copy} has ${keys.length} webhooks, not one for each account.`);
    keys.forEach(({ key }, tenant) => {
      setUrl.run(key, webhookUrl(receiverPort, tenant));
    });
  });
  return { folder: copy, remove: () => rmSync(copy, { recursive: true, force: true }) };
}

/** Lets everything that is pending wait for its next try until then, ms since the Unix epoch. */
export function postponeBacklog(folder: string, until: number): void {
  change(folder, (client) => void client.run("update delivery set next_attempt_at = ?1 where state = 0", [until]));
}

function change(folder: string, write: (client: Database) => void): void {
  const client = new Database(databaseIn(folder), { readwrite: true, strict: true });
  client.run("begin immediate");
  write(client);
  client.run("commit");
  client.query("pragma wal_checkpoint(truncate)").all();
  client.close();
  // What the kernel still has to write would be paid for by the syncs that are measured next.
  const file = openSync(databaseIn(folder), "r");
  fsyncSync(file);
  closeSync(file);
}

/** Looks into a database that a server has open. Each look is over before it returns, so that none holds up the log. */
export function watch(folder: string) {
  const client = new Database(databaseIn(folder), { readonly: true, strict: true });
  const number = (sql: string) => client.query<{ n: number }, []>(`select (${sql}) as n`).get()?.n ?? 0;
  return {
    deletedTenants: () => number("select count(*) from tenant where deleted_at is not null"),
    eventsOfDeleted: () =>
      number("select count(*) from event where tenant_key in (select key from tenant where deleted_at is not null)"),
    events: () => number("select sum(events) from tenant_usage"),
    firstSeq: () => number("select coalesce(min(seq), 9007199254740991) from event"),
    freePages: () => number("select freelist_count from pragma_freelist_count"),
    close: () => client.close(),
  };
}

/** What must hold in any database that the store has written; each selects what breaks it. */
const rules: readonly { rule: string; broken: string }[] = [
  {
    rule: "the counters of a tenant are those of its records",
    broken: `select tenant_key from tenant_usage u where (pending, delivered, failed) <> (
      select coalesce(sum(state = 0), 0), coalesce(sum(state = 1), 0), coalesce(sum(state = 2), 0)
      from delivery where delivery.tenant_key = u.tenant_key)`,
  },
  {
    rule: "a tenant has counted its events",
    // Counted once: events have no index by tenant, and a walk through all of them for each takes hours.
    broken: `select u.tenant_key from tenant_usage u
      left join (select tenant_key, count(*) as events from event group by tenant_key) e on e.tenant_key = u.tenant_key
      where u.events <> coalesce(e.events, 0)`,
  },
  {
    rule: "every event has a record",
    broken: "select 1 where (select count(*) from event) <> (select count(distinct event_seq) from delivery)",
  },
  {
    rule: "a record has counted its attempts",
    broken: "select 1 where (select sum(attempts) from delivery) <> (select count(*) from attempt)",
  },
  {
    rule: "the minutes of a tenant add up to its counters",
    broken: `select u.tenant_key from tenant_usage u
      left join (select tenant_key, sum(accepted) as accepted, sum(delivered) as delivered, sum(failed) as failed
                 from stat group by tenant_key) s on s.tenant_key = u.tenant_key
      where (u.events, u.delivered, u.failed) <> (coalesce(accepted, 0), coalesce(s.delivered, 0), coalesce(s.failed, 0))`,
  },
  { rule: "no row has lost the one it belongs to", broken: "select * from pragma_foreign_key_check" },
  {
    rule: "the file is sound",
    broken: "select quick_check from pragma_quick_check where quick_check <> 'ok'",
  },
];

/** @throws Error that names the first rule that the database breaks */
export function examine(folder: string): void {
  const client = new Database(databaseIn(folder), { readonly: true, strict: true });
  try {
    for (const { rule, broken } of rules) {
      const found = client.query(`${broken} limit 3`).all();
      if (found.length > 0) throw new Error(`${folder} is not as it should be (${rule}): ${JSON.stringify(found)}`);
    }
  } finally {
    client.close();
  }
}
