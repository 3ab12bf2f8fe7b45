import type { Database } from "bun:sqlite";
import type { RegisteredWebhook } from "../../domain/tenant-state.ts";
import {
  type Resealed,
  type SealedPlace,
  type SealedSlice,
  type SealingVerbs,
  sealedColumns,
  sealedPlaces,
} from "../sealed.ts";
import type { Connection } from "./connection.ts";
import { keyBehindDamage, readableRows, unlessDamaged } from "./damage.ts";
import type { WriteTransaction } from "./transaction.ts";
import { writeAroundDamage } from "./write-around-damage.ts";

interface SealedRow {
  readonly owner: number;
  readonly key: number;
  readonly ownerId: string;
  readonly id: string;
  /** Null for a webhook without headers. */
  readonly sealed: Uint8Array | null;
}

/** Reads and replaces the sealed values of one table, inside a transaction or not. */
export interface SealedTable {
  slice(afterKey: number, limit: number): SealedSlice;
  /** Gets past damage, which `slice` fails on. */
  sliceAroundDamage(afterKey: number, limit: number): SealedSlice;
  /** False when the value has changed since it was read. */
  replace(value: Resealed): boolean;
}

function createSealedTable(client: Database, place: SealedPlace): SealedTable {
  const column = sealedColumns[place];
  const [ownerTable, ownerColumn] =
    place === "saved_card" ? ["billing_account", "account_key"] : ["tenant", "tenant_key"];
  const hasId = place !== "saved_card" && place !== "signing_secret";
  // From a key on, not after one: SQLite looks for what follows the last key of a page on that page, which may be damaged.
  const read = client.prepare<SealedRow, [number, number]>(
    `select own.${ownerColumn} as owner, own.key, own.${column} as sealed, owner.id as ownerId,
       ${hasId ? "own.id" : "''"} as id
     from ${place} own join ${ownerTable} owner on owner.key = own.${ownerColumn}
     where own.key >= ?1 order by own.key limit ?2`,
  );
  const keyFrom = client.prepare<{ key: number }, [number]>(
    `select key from ${place} where key >= ?1 order by key limit 1`,
  );
  const write = client.prepare(`update ${place} set ${column} = ?2 where key = ?1 and ${column} = ?3`);

  const sliceOf = (rows: readonly SealedRow[], isMore: boolean): SealedSlice => {
    const last = isMore ? rows.at(-1) : undefined;
    return {
      values: rows.flatMap(({ sealed, ...row }) => (sealed === null ? [] : [{ ...row, sealed }])),
      next: last ? { owner: last.owner, key: last.key } : null,
      damaged: 0,
    };
  };

  function passDamage(from: number): SealedSlice {
    // The row itself is there, and what belongs to it is not: its owner, or the rest of its value.
    const row = unlessDamaged(() => keyFrom.get(from));
    const behind = row ? row.key + 1 : keyBehindDamage(from, Number.MAX_SAFE_INTEGER, (key) => keyFrom.get(key));
    return {
      values: [],
      next: behind === null ? null : { owner: 0, key: behind - 1 },
      damaged: row || behind === null ? 1 : behind - from,
    };
  }

  return {
    slice(afterKey, limit) {
      const rows = read.all(afterKey + 1, limit);
      return sliceOf(rows, rows.length === limit);
    },
    sliceAroundDamage(afterKey, limit) {
      const { rows, isWhole } = readableRows(read.iterate(afterKey + 1, limit));
      if (rows.length === 0 && !isWhole) return passDamage(afterKey + 1);
      return sliceOf(rows, rows.length === limit || !isWhole);
    },
    replace: ({ key, was, sealed }) => write.run(key, Buffer.from(sealed), Buffer.from(was)).changes > 0,
  };
}

export function createSealedTables(client: Database): Readonly<Record<SealedPlace, SealedTable>> {
  const tableOf = (place: SealedPlace) => [place, createSealedTable(client, place)] as const;
  return Object.fromEntries(sealedPlaces.map(tableOf)) as Record<SealedPlace, SealedTable>;
}

export function sealingVerbs({ client, writer, hold, reportDamage }: Connection): SealingVerbs {
  const tables = createSealedTables(client);
  const readCheck = client.prepare<{ sealed: Uint8Array }, []>("select sealed from vault_check where id = 1");
  const writeCheck = client.prepare("update vault_check set sealed = ?1 where id = 1");

  function replaceAll(tx: WriteTransaction, place: SealedPlace, values: readonly Resealed[]): number {
    const replaced = values.filter((value) => tables[place].replace(value));
    // What is held in memory of an account is written back when its list changes.
    if (place === "webhook") {
      for (const { owner, key, sealed } of replaced) {
        const held = hold(tx, owner);
        held.webhooks = held.webhooks.map(
          (webhook): RegisteredWebhook => (webhook.key === key ? { ...webhook, sealedHeaders: sealed } : webhook),
        );
      }
    }
    return replaced.length;
  }

  return {
    async sealedValues(place, { key }, limit) {
      const whole = unlessDamaged(() => tables[place].slice(key, limit));
      if (whole !== null) return whole;
      reportDamage(`A part of the table ${place}`);
      return tables[place].sliceAroundDamage(key, limit);
    },

    async reseal(place, values) {
      let damaged = 0;
      const replaced = await writeAroundDamage(
        writer,
        values,
        (tx, some) => replaceAll(tx, place, some),
        ({ key }) => {
          damaged += 1;
          reportDamage(`Something that the row ${key} of the table ${place} needs`);
        },
        "heavy",
      );
      return { replaced: replaced.reduce((sum, some) => sum + some, 0), damaged };
    },

    keyCheck: async () => readCheck.get()?.sealed ?? null,

    // One process owns the file: what it knows, every server knows.
    replaceKeyCheck: (was, is) =>
      writer.submit((tx) => {
        const found = readCheck.get()?.sealed;
        if (found === undefined || Buffer.compare(found, was) !== 0) return { kind: "overtaken" } as const;
        writeCheck.run(Buffer.from(is));
        tx.changed({ kind: "master_key_changed" });
        return { kind: "replaced" } as const;
      }),
  };
}
