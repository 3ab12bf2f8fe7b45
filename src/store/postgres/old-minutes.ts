import type { MinuteTable } from "../minute-tables.ts";
import type { OldMinutes } from "../old-minutes.ts";
import type { Connection } from "./connection.ts";
import { arrayText } from "./parameters.ts";

/** The slot of merged rows, as of rows moved here: no node counts for a time so long ago. */
const slot = 0;

const equal = (keys: readonly string[]) => keys.map((key, i) => `${key} = $${i + 1}::bigint`).join(" and ");
const between = (keys: readonly string[]) =>
  `${equal(keys)} and minute >= $${keys.length + 1}::int and minute < $${keys.length + 2}::int`;

export const nextText = ({ name, keys }: MinuteTable) => {
  const after = keys.map((_, i) => `$${i + 1}::bigint`).join(", ");
  return `select ${keys.map((key) => `${key}::float8`).join(", ")} from ${name}
    where (${keys.join(", ")}) > (${after}) order by ${keys.map((key) => `${name}.${key}`).join(", ")} limit 1`;
};

export const firstText = ({ name, keys }: MinuteTable) =>
  `select minute from ${name} where ${equal(keys)} order by minute limit 1`;

export const firstWithinHourText = ({ name, keys }: MinuteTable) =>
  `select minute from ${name} where ${between(keys)} and minute % 60 <> 0 order by minute limit 1`;

export function oldMinutes({ pool, writes }: Pick<Connection, "pool" | "writes">, table: MinuteTable): OldMinutes {
  const { name, keys, counts } = table;
  const columns = [...counts, "latency"].join(", ");
  const types = ["int", ...counts.map(() => "int"), "text"];
  const arrays = types.map((type, i) => `$${keys.length + i + 1}::${type}[]`).join(", ");
  const of = keys.map((_, i) => `$${i + 1}::bigint`).join(", ");
  const texts = {
    next: nextText(table),
    first: firstText(table),
    within: firstWithinHourText(table),
    rows: `select minute, ${columns} from ${name} where ${between(keys)}`,
    remove: `delete from ${name} where ${between(keys)}`,
    insert: `insert into ${name} (${keys.join(", ")}, slot, minute, ${columns})
      select ${of}, ${slot}, minute, ${columns} from unnest(${arrays}) as given (minute, ${columns})
      where exists (select 1 from tenant where key = $1::bigint and deleted_at is null)`,
  };

  const minuteIn = (rows: readonly { minute: number }[]) => rows[0]?.minute ?? null;

  return {
    async next(after) {
      const [row] = await pool.read<Record<string, number>>(texts.next, [...(after ?? keys.map(() => -1))]);
      return row ? keys.map((key) => row[key] ?? 0) : null;
    },
    first: async (given) => minuteIn(await pool.read<{ minute: number }>(texts.first, [...given])),
    firstWithinHour: async (given, from, to) =>
      minuteIn(await pool.read<{ minute: number }>(texts.within, [...given, from, to])),
    async rows(given, from, to) {
      const rows = await pool.read<Record<string, number> & { latency: string; minute: number }>(texts.rows, [
        ...given,
        from,
        to,
      ]);
      return rows.map((row) => ({
        minute: row.minute,
        latency: row.latency,
        counts: counts.map((count) => row[count] ?? 0),
      }));
    },
    replace: (given, from, to, rows) =>
      writes.submit(async ({ run }) => {
        await run(texts.remove, [...given, from, to]);
        if (rows.length === 0) return;
        await run(texts.insert, [
          ...given,
          arrayText(rows.map(({ minute }) => minute)),
          ...counts.map((_, i) => arrayText(rows.map((row) => row.counts[i] ?? 0))),
          arrayText(rows.map(({ latency }) => latency)),
        ]);
      }),
  };
}
