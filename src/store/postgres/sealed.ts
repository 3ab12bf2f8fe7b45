import {
  type KeyOfAll,
  type Resealed,
  type SealedPlace,
  type SealedRef,
  type SealedValue,
  type SealingVerbs,
  sealedColumns,
} from "../sealed.ts";
import type { Connection } from "./connection.ts";
import { arrayText, packBytes } from "./parameters.ts";

type SealedRow = Omit<SealedValue, "sealed"> & { readonly sealed: Uint8Array | null };

/** In primary-key order. */
function sliceText(place: SealedPlace): string {
  const columns = `own.key::float8 as key, own.${sealedColumns[place]} as sealed, owner.id as "ownerId"`;
  if (place === "saved_card") {
    return `select own.account_key::float8 as owner, ${columns}, '' as id
      from saved_card own join billing_account owner on owner.key = own.account_key
      where $1::bigint is not null and own.key > $2::bigint order by own.key limit $3::int`;
  }
  return `select own.tenant_key::float8 as owner, ${columns}, ${place === "signing_secret" ? "''" : "own.id"} as id
    from ${place} own join tenant owner on owner.key = own.tenant_key
    where (own.tenant_key, own.key) > ($1::bigint, $2::bigint) order by own.tenant_key, own.key limit $3::int`;
}

function resealText(place: SealedPlace): string {
  const column = sealedColumns[place];
  return `update ${place} own set ${column} = substring($3::bytea from at for length)
    from unnest($1::bigint[], $2::bigint[], $4::int[], $5::int[], $7::int[], $8::int[])
      as given (owner, key, at, length, was_at, was_length)
    where own.${place === "saved_card" ? "account_key" : "tenant_key"} = given.owner and own.key = given.key
      and own.${column} = substring($6::bytea from was_at for was_length)
    returning 1`;
}

const valuesOf = (values: readonly Resealed[]) => {
  const sealed = packBytes(values.map((value) => value.sealed));
  const was = packBytes(values.map((value) => value.was));
  return [
    arrayText(values.map(({ owner }) => owner)),
    arrayText(values.map(({ key }) => key)),
    ...[sealed.bytes, sealed.starts, sealed.lengths],
    ...[was.bytes, was.starts, was.lengths],
  ];
};

/**
 * Includes nodes whose lease has run out and that nobody has rescued yet: their next heartbeat brings them back. A node that
 * joins waits for this transaction, and then finds what it has written.
 */
const nodesWithout: Readonly<Record<KeyOfAll["by"], string>> = {
  known: "select name from node where not ($1::text = any(string_to_array(keys, ','))) order by slot",
  used: "select name from node where split_part(keys, ',', 1) <> $1::text order by slot",
};

export function sealingVerbs({ pool, writes }: Pick<Connection, "pool" | "writes">): SealingVerbs {
  return {
    async sealedValues(place, { owner, key }: SealedRef, limit) {
      const rows = await pool.read<SealedRow>(sliceText(place), [owner, key, limit]);
      const last = rows.length < limit ? undefined : rows.at(-1);
      return {
        values: rows.flatMap(({ sealed, ...row }) => (sealed === null ? [] : [{ ...row, sealed }])),
        next: last ? { owner: last.owner, key: last.key } : null,
        damaged: 0,
      };
    },

    reseal: (place, values) =>
      writes.submit(async (tx) => {
        const replaced = await tx.run(resealText(place), valuesOf(values));
        return { replaced: replaced.length, damaged: 0 };
      }),

    async keyCheck() {
      const [row] = await pool.read<{ sealed: Uint8Array }>("select sealed from vault_check where id = 1");
      return row?.sealed ?? null;
    },

    replaceKeyCheck: (was, is, { keyId, by }) =>
      writes.submit(async (tx) => {
        // Until this is committed, nobody joins and no heartbeat says anything different.
        await tx.run("lock table node in share row exclusive mode");
        const without = await tx.run<{ name: string }>(nodesWithout[by], [keyId]);
        if (without.length > 0) return { kind: "missing", nodes: without.map(({ name }) => name) } as const;
        const written = await tx.run(
          "update vault_check set sealed = $1::bytea where id = 1 and sealed = $2::bytea returning 1",
          [is, was],
        );
        if (written.length === 0) return { kind: "overtaken" } as const;
        tx.changed({ kind: "master_key_changed" });
        return { kind: "replaced" } as const;
      }),
  };
}
