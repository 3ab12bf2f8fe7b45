import type { Database } from "bun:sqlite";
import type { Clock } from "../../lib/clock.ts";
import { type DamageReport, keyBehindDamage, readableRows, unlessDamaged } from "./damage.ts";
import type { RowKeys } from "./row-keys.ts";
import type { WriteTransaction } from "./transaction.ts";
import type { Writer } from "./writer.ts";

/**
 * At first a new record is in none of its account's lists; it is filed there a moment later, together with the account's others.
 *
 *   accepted, filed = 0 ──▶ settled, as nearly all are by then ──▶ filed = 1: in `delivery_by_tenant` and `delivery_by_state`
 *
 * Both indexes begin with the account, so that every list is a single walk. If a record were entered there immediately, it would
 * write two pages that only its account uses in the commit that accepts it, and two in the one that settles it: with 64 accounts
 * that was five sixths of what went to disk, and a seventh of the processor time of an event. Done later, everything that an
 * account got in the meantime goes into a page together.
 *
 * Queries on these indexes say `filed = 1`, since SQLite uses them for no others. Code that reads a list first waits for
 * `whenFiled`, or files in its own transaction. The queue goes by webhook and a settlement by key, so neither needs that.
 */
export interface Filing {
  /**
   * Whether the records of this many events of one account are to be filed later. Not for a batch, which shares pages anyway; not
   * when too many are waiting already; and not when the disk is nearly full, as it may not be possible later.
   */
  defers(events: number): boolean;
  /** Adds a record that this transaction has written with `filed = 0`. */
  add(tenantKey: number, deliveryKey: number): void;
  /** Told by a transaction that has written records with `filed = 1`: the next start need not look for others among them. */
  addFiled(tx: WriteTransaction): void;
  /** Files the account's records: from here on this transaction finds all of them. */
  file(tx: WriteTransaction, tenantKey: number): void;
  /** Takes the account's records that are in no list: code that erases the account has to find them. */
  take(tx: WriteTransaction, tenantKey: number): readonly number[];
  /** Once resolved, every list has what the account got before the call. If filing fails, lists stay as they were. */
  whenFiled(tenantKey: number): Promise<void>;
  /** Files what is waiting, so that a start rarely finds anything to file. */
  close(): Promise<void>;
}

/**
 * How often a look is taken, which files what was there at the previous look: by then nearly all of it has been settled, while
 * a record filed before that has to be moved within `delivery_by_state`. An unlisted record is never noticed, since reading a
 * list files it first.
 */
const lookEachMs = 250;

/** Records in one writer job: takes it a millisecond. */
const recordsAtOnce = 250;

/** From this many events of one account on, they count as a batch. */
const batchEvents = 20;

/** Most waiting records, over all accounts: as many as come in within a second. */
const mostWaiting = 10_000;

/** The next start reads at most so many records again that were filed as they were accepted: that takes a millisecond. */
const mostReadAgain = 10_000;

/** Pause after a failure, such as a full disk. */
const retryAfterMs = 1_000;

/** Records of an account: at most `limit`, with keys up to `upTo`. */
interface Some {
  readonly limit: number;
  readonly upTo: number;
}

const all: Some = { limit: Number.POSITIVE_INFINITY, upTo: Number.POSITIVE_INFINITY };

interface FilingDeps {
  client: Database;
  writer: Pick<Writer, "submit">;
  clock: Clock;
  rowKeys: Pick<RowKeys, "lastDelivery">;
  /** See `spare-room.ts`. */
  hasRoom(): boolean;
  reportDamage: DamageReport;
}

export function createFiling({ client, writer, clock, rowKeys, hasRoom, reportDamage }: FilingDeps): Filing {
  const statements = prepare(client);
  /** Keys by account, the account that has waited longest first. */
  const waiting = new Map<number, number[]>();
  let records = 0;
  let lastAdded = 0;
  /** The value of `lastAdded` at the latest look. */
  let seenTo = 0;
  let cancel: (() => void) | null = null;
  let closed = false;
  /** As the database has it, or this transaction writes it. */
  let filedTo = statements.filedTo.get()?.key ?? 0;
  for (const { key, tenantKey } of unfiled(statements, reportDamage)) add(tenantKey, key);

  function add(tenantKey: number, deliveryKey: number): void {
    const keys = waiting.get(tenantKey);
    if (keys) keys.push(deliveryKey);
    else waiting.set(tenantKey, [deliveryKey]);
    records += 1;
    lastAdded = deliveryKey;
    cancel ??= clock.after(lookEachMs, look);
  }

  function take(tx: WriteTransaction, tenantKey: number, { limit, upTo }: Some = all): readonly number[] {
    const keys = waiting.get(tenantKey);
    if (!keys) return [];
    const newer = keys.findIndex((key) => key > upTo);
    const some = keys.splice(0, Math.min(limit, newer === -1 ? keys.length : newer));
    if (keys.length === 0) waiting.delete(tenantKey);
    records -= some.length;
    tx.ifUndone(() => {
      records += some.length;
      waiting.set(tenantKey, [...some, ...(waiting.get(tenantKey) ?? [])]);
    });
    return some;
  }

  function file(tx: WriteTransaction, tenantKey: number, which?: Some): number {
    const some = take(tx, tenantKey, which);
    for (const key of some) {
      if (!fileOne(statements, key)) reportDamage(`A record in the lists of the account with the key ${tenantKey}`);
    }
    return some.length;
  }

  /** Files the records up to this key for some of these accounts, which it removes from the list. */
  function fileSome(tx: WriteTransaction, tenantKeys: number[], upTo: number): void {
    const taken = [...tenantKeys];
    tx.ifUndone(() => tenantKeys.splice(0, tenantKeys.length, ...taken));
    for (let left = recordsAtOnce; left > 0; ) {
      const [tenantKey] = tenantKeys;
      if (tenantKey === undefined) return;
      left -= file(tx, tenantKey, { limit: left, upTo });
      if (left > 0) tenantKeys.shift();
    }
  }

  /** Everything up to this key is filed, or everything there is: where nothing waits. */
  function moveMark(tx: WriteTransaction, upTo = filedTo): void {
    const from = filedTo;
    const to = waiting.size === 0 ? rowKeys.lastDelivery() : upTo;
    if (to <= from) return;
    statements.mark.run(to);
    filedTo = to;
    tx.ifUndone(() => {
      filedTo = Math.min(filedTo, from);
    });
  }

  function look(): void {
    cancel = null;
    const upTo = seenTo;
    seenTo = lastAdded;
    fileUpTo(upTo).then(
      () => goOn(lookEachMs),
      () => goOn(retryAfterMs),
    );
  }

  function goOn(afterMs: number): void {
    if (waiting.size > 0 && !closed) cancel ??= clock.after(afterMs, look);
  }

  async function fileUpTo(upTo: number): Promise<void> {
    const tenantKeys = [...waiting].flatMap(([tenantKey, [oldest = upTo]]) => (oldest <= upTo ? [tenantKey] : []));
    while (tenantKeys.length > 0) {
      await writer.submit<void>((tx) => {
        fileSome(tx, tenantKeys, upTo);
        if (tenantKeys.length === 0) moveMark(tx, upTo);
      }, "patient");
    }
  }

  /** Files what the account has now, a little at a time, since others want to write, too. */
  async function fileOf(tenantKey: number): Promise<void> {
    let left = waiting.get(tenantKey)?.length ?? 0;
    while (left > 0) {
      const filed = await writer.submit<number>((tx) => file(tx, tenantKey, { limit: recordsAtOnce, upTo: lastAdded }));
      left = filed === 0 ? 0 : left - filed;
    }
  }

  return {
    defers: (events) => events < batchEvents && records < mostWaiting && hasRoom(),
    add,
    addFiled(tx) {
      if (waiting.size === 0 && rowKeys.lastDelivery() - filedTo >= mostReadAgain) moveMark(tx);
    },
    file,
    take,
    whenFiled: (tenantKey) => fileOf(tenantKey).catch(() => {}),
    async close() {
      closed = true;
      cancel?.();
      if (waiting.size === 0 && filedTo === rowKeys.lastDelivery()) return;
      await writer
        .submit<void>((tx) => {
          for (const tenantKey of [...waiting.keys()]) file(tx, tenantKey);
          moveMark(tx);
        })
        .catch(() => {});
    },
  };
}

/** Files what a killed server has left unfiled, in a database that no server uses. */
export function fileLeftOver(client: Database): void {
  const statements = prepare(client);
  client.transaction(() => {
    for (const { key } of unfiled(statements, () => {})) fileOne(statements, key);
  })();
}

interface Unfiled {
  readonly key: number;
  readonly tenantKey: number;
}

interface FoundRecord extends Unfiled {
  readonly filed: number;
}

const prepare = (client: Database) => ({
  filedTo: client.prepare<{ key: number }, []>("select filed_to as key from lane where id = 1"),
  unfiled: client.prepare<Unfiled, [number]>(
    "select key, tenant_key as tenantKey from delivery where key > ?1 and filed = 0 order by key",
  ),
  some: client.prepare<FoundRecord, [number, number]>(
    "select key, tenant_key as tenantKey, filed from delivery where key >= ?1 order by key limit ?2",
  ),
  set: client.prepare<never, [number]>("update delivery set filed = 1 where key = ?1"),
  mark: client.prepare<never, [number]>("update lane set filed_to = ?1 where id = 1"),
});

type Statements = ReturnType<typeof prepare>;

/** The records that are in no list, apart from damaged ones. */
function unfiled(statements: Statements, reportDamage: DamageReport): readonly Unfiled[] {
  const filedTo = statements.filedTo.get()?.key ?? 0;
  const found = unlessDamaged(() => statements.unfiled.all(filedTo));
  if (found) return found;
  reportDamage("A part of the table delivery");
  return readableUnfiled(statements, filedTo);
}

function readableUnfiled({ some }: Statements, filedTo: number): readonly Unfiled[] {
  const found: Unfiled[] = [];
  for (let from = filedTo + 1; ; ) {
    const { rows, isWhole } = readableRows(some.iterate(from, recordsAtOnce));
    found.push(...rows.filter(({ filed }) => filed === 0));
    if (isWhole && rows.length < recordsAtOnce) return found;
    const last = rows.at(-1);
    const next = last ? last.key + 1 : keyBehindDamage(from, Number.MAX_SAFE_INTEGER, (key) => some.get(key, 1));
    if (next === null) return found;
    from = next;
  }
}

/** @returns false when it is damaged: it stays out of the lists */
const fileOne = ({ set }: Statements, key: number): boolean => unlessDamaged(() => set.run(key)) !== null;
