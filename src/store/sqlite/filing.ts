import type { Database } from "bun:sqlite";
import type { Clock } from "../../lib/clock.ts";
import { isDamage } from "./damage.ts";
import type { Writer, WriteTransaction } from "./writer.ts";

/**
 * A fresh record is in no list of its account at first; it is filed there a moment later, with the account's others.
 *
 *   accepted, filed = 0 ──▶ settled, as nearly all are by then ──▶ filed = 1: in `delivery_by_tenant` and `delivery_by_state`
 *
 * Both indexes begin with the account, so that every list is one walk. Entered there at once, a record writes two pages of its
 * account's own in the commit that accepts it and two in that which settles it: with 64 accounts five sixths of what went to
 * the disk, and a seventh of the processor time of an event. Later, what an account got meanwhile goes into a page together.
 *
 * Queries of these indexes say `filed = 1`, since SQLite uses them for no other. Whoever reads a list first waits for
 * `whenFiled`, or files in its own transaction. The queue goes by webhooks and a settlement by the key: both do without.
 */
export interface Filing {
  /** Of a record that this transaction has written with `filed = 0`. */
  add(tenantKey: number, deliveryKey: number): void;
  /** From here on this transaction finds all records of the account. */
  file(tx: WriteTransaction, tenantKey: number): void;
  /** From then on every list has what the account got before the call. On a full disk it has what it had. */
  whenFiled(tenantKey: number): Promise<void>;
  /** Files what waits, so that a start seldom finds anything to file. */
  close(): Promise<void>;
}

/** For so long nobody sees that a record is not listed: whoever asks has it filed. */
const fileAfterMs = 250;

/** Records in one job of the writer: a millisecond of it. */
const recordsAtOnce = 250;

/** After a failure, which a full disk may be. */
const retryAfterMs = 1_000;

interface FilingDeps {
  client: Database;
  writer: Pick<Writer, "submit">;
  clock: Clock;
}

export function createFiling({ client, writer, clock }: FilingDeps): Filing {
  const statements = prepare(client);
  /** Keys by account, the one that has waited longest first. */
  const waiting = new Map<number, number[]>();
  let lastAdded = 0;
  let cancel: (() => void) | null = null;
  for (const { key, tenantKey } of statements.unfiled.all()) add(tenantKey, key);

  function add(tenantKey: number, deliveryKey: number): void {
    const keys = waiting.get(tenantKey);
    if (keys) keys.push(deliveryKey);
    else waiting.set(tenantKey, [deliveryKey]);
    lastAdded = deliveryKey;
    cancel ??= clock.after(fileAfterMs, fileAll);
  }

  function file(tx: WriteTransaction, tenantKey: number, limit = Number.POSITIVE_INFINITY): number {
    const keys = waiting.get(tenantKey);
    if (!keys) return 0;
    const some = keys.splice(0, limit);
    if (keys.length === 0) waiting.delete(tenantKey);
    tx.ifUndone(() => waiting.set(tenantKey, [...some, ...(waiting.get(tenantKey) ?? [])]));
    for (const key of some) fileOne(statements, key);
    return some.length;
  }

  /** Of some of these accounts, which are taken from the list. */
  function fileSome(tx: WriteTransaction, tenantKeys: number[]): void {
    const taken = [...tenantKeys];
    tx.ifUndone(() => tenantKeys.splice(0, tenantKeys.length, ...taken));
    for (let left = recordsAtOnce; left > 0; ) {
      const [tenantKey] = tenantKeys;
      if (tenantKey === undefined) return;
      left -= file(tx, tenantKey, left);
      if (left > 0) tenantKeys.shift();
    }
  }

  function fileAll(): void {
    cancel = null;
    fileWaiting().then(
      () => goOn(fileAfterMs),
      () => goOn(retryAfterMs),
    );
  }

  function goOn(afterMs: number): void {
    if (waiting.size > 0) cancel ??= clock.after(afterMs, fileAll);
  }

  /** All accounts that wait now, each with what it has when its turn comes. */
  async function fileWaiting(): Promise<void> {
    const tenantKeys = [...waiting.keys()];
    const filedTo = lastAdded;
    while (tenantKeys.length > 0) {
      await writer.submit<void>((tx) => {
        fileSome(tx, tenantKeys);
        if (tenantKeys.length === 0) statements.mark.run(filedTo);
      }, "patient");
    }
  }

  return {
    add,
    file,
    async whenFiled(tenantKey) {
      if (!waiting.has(tenantKey)) return;
      await writer.submit<void>((tx) => void file(tx, tenantKey)).catch(() => {});
    },
    async close() {
      cancel?.();
      if (waiting.size === 0) return;
      await writer
        .submit<void>((tx) => {
          for (const tenantKey of [...waiting.keys()]) file(tx, tenantKey);
          statements.mark.run(lastAdded);
        })
        .catch(() => {});
    },
  };
}

/** Files what a server that was killed has left, in a database that no server uses. */
export function fileLeftOver(client: Database): void {
  const statements = prepare(client);
  client.transaction(() => {
    for (const { key } of statements.unfiled.all()) fileOne(statements, key);
  })();
}

const prepare = (client: Database) => ({
  unfiled: client.prepare<{ key: number; tenantKey: number }, []>(
    `select key, tenant_key as tenantKey from delivery
     where key > (select filed_to from lane where id = 1) and filed = 0 order by key`,
  ),
  set: client.prepare<never, [number]>("update delivery set filed = 1 where key = ?1"),
  mark: client.prepare<never, [number]>("update lane set filed_to = ?1 where id = 1"),
});

/** One that is damaged stays out of the lists; who reads it by its key reports it. */
function fileOne({ set }: ReturnType<typeof prepare>, key: number): void {
  try {
    set.run(key);
  } catch (error) {
    if (!isDamage(error)) throw error;
  }
}
