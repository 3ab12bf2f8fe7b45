import { expect, test } from "bun:test";
import { SQL } from "bun";
import { accountMinutes, webhookMinutes } from "../../../src/store/minute-tables.ts";
import { acceptKeyedText, acceptText, metText } from "../../../src/store/postgres/accept-lane.ts";
import { lockCancelledText, returnText, toReturnText } from "../../../src/store/postgres/cancelled-runs.ts";
import { unownText } from "../../../src/store/postgres/holdings.ts";
import { headsText, letGoText, releaseNextText } from "../../../src/store/postgres/lines.ts";
import { addText, addToKnownText } from "../../../src/store/postgres/minute-rows.ts";
import { makePartitions } from "../../../src/store/postgres/partitions.ts";
import { byIndexes, byKeys } from "../../../src/store/postgres/planner.ts";
import {
  claimText,
  discoverRangeText,
  discoverText,
  lockReleasedText,
  nextDueText,
  releaseText,
} from "../../../src/store/postgres/queue.ts";
import { failText } from "../../../src/store/postgres/removed-webhooks.ts";
import { overtakeText } from "../../../src/store/postgres/requeued-events.ts";
import { settleText } from "../../../src/store/postgres/settle-lane.ts";
import { addRefusedText } from "../../../src/store/postgres/stats.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";

interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly Plans?: readonly PlanNode[];
}

/** An account may have millions of records in the queue. */
function findsByKey(index: string, columns: readonly string[], condition: string): boolean {
  if (index === "pending_by_tenant") return columns.every((name) => condition.includes(`(${name} = `));
  return new RegExp(`\\b${columns[0]}\\b`).test(condition);
}

const flat = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(flat)];

describeWithPostgres("the plan of a statement that is hot, or has a list of keys", () => {
  const postgres = usePostgres();

  /**
   * Indexes it uses, partitions under the name of their table, and of those the ones that it walks, as it has no condition on
   * what they begin with, or on less than the whole key of a record in the queue; tables it reads from one end to the other.
   */
  async function explain(text: string, state: "new" | "vacuumed") {
    const url = await postgres.migrated();
    const pool = postgres.pool(url);
    await makePartitions(pool, "month", Date.UTC(2026, 10, 22));
    // As the janitor does it, and most often when the queue is empty.
    if (state === "vacuumed") await pool.read("vacuum pending");
    const sql = new SQL(url, { max: 1, connection: { ...byIndexes, ...byKeys } });
    postgres.cleanUpFirst(() => sql.close());
    await sql.unsafe(`prepare hot as ${text}`);
    const parameters = Math.max(...[...text.matchAll(/\$(\d+)/g)].map(([, n]) => Number(n)), 0);
    const given = parameters === 0 ? "" : `(${Array.from({ length: parameters }, () => "null").join()})`;
    const keys: { index: string; columns: string[] }[] = await sql.unsafe(`select indexrelid::regclass::text as index,
      array_agg(attname::text order by attnum) as columns
      from pg_index join pg_attribute on attrelid = indexrelid group by 1`);
    const keyOf = new Map(keys.map(({ index, columns }) => [index, columns]));
    const [row] = await sql.unsafe(`explain (format json) execute hot${given}`);
    const nodes = flat(row["QUERY PLAN"][0].Plan);
    const indexes = nodes.flatMap(({ "Index Name": name }) => name ?? []);
    const walked = nodes.flatMap(({ "Index Name": name, "Index Cond": condition = "" }) =>
      name === undefined || findsByKey(name, keyOf.get(name) ?? [], condition) ? [] : name,
    );
    const scanned = nodes.flatMap((node) => (node["Node Type"] === "Seq Scan" ? (node["Relation Name"] ?? "") : []));
    const joins = nodes.map((node) => node["Node Type"]).filter((type) => /Hash Join|Merge Join/.test(type));
    // An account has a few webhooks, and either index of them will do.
    const tableOf = (name: string) =>
      name.replace(/^(event|attempt|delivery)_.*(_pkey|_idx)$|^(webhook)_(?!stat_).*/, "$1$3");
    return { indexes: [...new Set(indexes.map(tableOf))].sort(), walked, scanned, joins };
  }

  const plans: readonly [string, string, string[]][] = [
    ["accept", acceptText, ["lane_pkey", "tenant_pkey", "usage_tenant_key_slot_pk"]],
    ["accept with ordering keys", acceptKeyedText, ["lane_pkey", "tenant_pkey", "usage_tenant_key_slot_pk"]],
    ["find the heads of lines", headsText, ["pending_head_of_line"]],
    [
      "let the next ones of lines go",
      releaseNextText,
      ["pending_by_tenant", "pending_head_of_line", "pending_held_back"],
    ],
    ["let go what is held back", letGoText, ["pending_by_tenant", "pending_held_back"]],
    ["idempotency keys that were met before", metText, ["idempotency_tenant_key_key_pk"]],
    ["settle", settleText, ["lane_pkey", "pending_by_tenant", "tenant_pkey"]],
    [
      "claim",
      claimText,
      [
        "event",
        "lane_pkey",
        "pending_by_tenant",
        "pending_due_of_webhook",
        "replay_label_tenant_key_key_pk",
        "replay_tenant_key_key_pk",
        "tenant_pkey",
        "webhook",
      ],
    ],
    ["when the next one is due", nextDueText, ["pending_due_of_webhook", "tenant_pkey", "webhook"]],
    ["discover", discoverText, ["pending_due_of_webhook", "tenant_pkey", "webhook"]],
    ["discover what fell due", discoverRangeText, ["pending_due", "tenant_pkey", "webhook"]],
    ["release", releaseText, ["pending_by_tenant"]],
    ["wait for who writes what is released", lockReleasedText, ["pending_by_tenant"]],
    ["unown", unownText, ["pending_by_tenant"]],
    ["overtake runs", overtakeText, ["pending_by_tenant"]],
    ["end what waits for a removed webhook", failText, ["pending_by_tenant"]],
    ["look for what waits for a cancelled replay", toReturnText, ["pending_to_return"]],
    ["lock what waits for a cancelled replay", lockCancelledText, ["pending_by_tenant"]],
    ["return what waits for a cancelled replay", returnText, ["pending_by_tenant"]],
    ["add to statistics", addText(accountMinutes), ["tenant_pkey"]],
    ["add to known statistics", addToKnownText(accountMinutes), ["stat_tenant_key_minute_slot_pk"]],
    ["add to statistics of webhooks", addText(webhookMinutes), ["tenant_pkey"]],
    [
      "add to known statistics of webhooks",
      addToKnownText(webhookMinutes),
      ["webhook_stat_tenant_key_webhook_key_minute_slot_pk"],
    ],
    ["count refused events", addRefusedText, ["tenant_pkey"]],
  ];
  test.each(plans)("%s finds its rows by keys", async (what, text, indexes) => {
    // From the first one of all on, one for each webhook.
    const walked = what === "discover" ? ["pending_due_of_webhook"] : [];
    for (const state of ["new", "vacuumed"] as const) {
      expect(await explain(text, state), state).toEqual({ indexes, walked, scanned: [], joins: [] });
    }
  });
});
