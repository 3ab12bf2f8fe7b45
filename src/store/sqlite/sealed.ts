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
  /** False when the value has changed since it was read. */
  replace(value: Resealed): boolean;
}

export function createSealedTable(client: Database, place: SealedPlace): SealedTable {
  const column = sealedColumns[place];
  const [ownerTable, ownerColumn] =
    place === "saved_card" ? ["billing_account", "account_key"] : ["tenant", "tenant_key"];
  const hasId = place !== "saved_card" && place !== "signing_secret";
  const read = client.prepare<SealedRow, [number, number]>(
    `select own.${ownerColumn} as owner, own.key, own.${column} as sealed, owner.id as ownerId,
       ${hasId ? "own.id" : "''"} as id
     from ${place} own join ${ownerTable} owner on owner.key = own.${ownerColumn}
     where own.key > ?1 order by own.key limit ?2`,
  );
  const write = client.prepare(`update ${place} set ${column} = ?2 where key = ?1 and ${column} = ?3`);

  return {
    slice(afterKey, limit) {
      const rows = read.all(afterKey, limit);
      const last = rows.length < limit ? undefined : rows.at(-1);
      return {
        values: rows.flatMap(({ sealed, ...row }) => (sealed === null ? [] : [{ ...row, sealed }])),
        next: last ? { owner: last.owner, key: last.key } : null,
      };
    },
    replace: ({ key, was, sealed }) => write.run(key, Buffer.from(sealed), Buffer.from(was)).changes > 0,
  };
}

export function createSealedTables(client: Database): Readonly<Record<SealedPlace, SealedTable>> {
  const tableOf = (place: SealedPlace) => [place, createSealedTable(client, place)] as const;
  return Object.fromEntries(sealedPlaces.map(tableOf)) as Record<SealedPlace, SealedTable>;
}

export function sealingVerbs({ client, writer, hold }: Connection): SealingVerbs {
  const tables = createSealedTables(client);
  const readCheck = client.prepare<{ sealed: Uint8Array }, []>("select sealed from vault_check where id = 1");
  const writeCheck = client.prepare("update vault_check set sealed = ?1 where id = 1");

  return {
    sealedValues: async (place, { key }, limit) => tables[place].slice(key, limit),

    reseal: (place, values) =>
      writer.submit<number>((tx) => {
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
      }, "heavy"),

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
