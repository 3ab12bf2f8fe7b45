import { expect, test } from "bun:test";
import { firstSeqAt } from "../../../src/lib/id.ts";
import { makePartitions } from "../../../src/store/postgres/partitions.ts";
import type { Pool } from "../../../src/store/postgres/pool.ts";
import { latestText, statusesText } from "../../../src/store/postgres/webhook-health.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";

const month = Date.UTC(2026, 10);
const seq = firstSeqAt(Date.UTC(2026, 10, 22));

interface PlanNode {
  "Node Type": string;
  "Relation Name"?: string;
  "Index Name"?: string;
  "Actual Rows": number;
  "Rows Removed by Filter"?: number;
  "Actual Loops": number;
  Plans?: PlanNode[];
}

describeWithPostgres("the health of webhooks", () => {
  const postgres = usePostgres();

  /** One connection, which plans as it does for a statement that was prepared once. */
  async function open(): Promise<Pool> {
    const pool = postgres.pool(await postgres.migrated(), { size: 1 });
    await makePartitions(pool, "month", month);
    await pool.write("set plan_cache_mode = force_generic_plan");
    return pool;
  }

  /** What a statement has read of tables, also what it then left out. */
  async function scansOf(pool: Pool, text: string, ...values: (number | string)[]) {
    await pool.write(`prepare asked as ${text}`);
    const given = values.map((value) => (typeof value === "string" ? `'${value}'` : value)).join();
    const [row] = await pool.read<Record<string, unknown>>(`explain (analyze, format json) execute asked(${given})`);
    const plan = row?.["QUERY PLAN"] as string | { Plan: PlanNode }[];
    const [{ Plan }] = typeof plan === "string" ? JSON.parse(plan) : plan;
    await pool.write("deallocate asked");
    const scans: { table: string; index: string; rows: number }[] = [];
    const collect = (node: PlanNode) => {
      const { "Relation Name": table, "Index Name": index, "Actual Rows": kept, "Actual Loops": loops } = node;
      const rows = Math.round((kept + (node["Rows Removed by Filter"] ?? 0)) * loops);
      if (table !== undefined && rows > 0) scans.push({ table, index: index ?? node["Node Type"], rows });
      for (const below of node.Plans ?? []) collect(below);
    };
    collect(Plan);
    return scans;
  }

  /** Of accounts 1 and 2: ended records, and some that wait. Every tenth was sent to webhook 2, the others to webhook 1. */
  async function fill(pool: Pool, ended: number): Promise<void> {
    const columns = "tenant_key, event_seq, key, run, attempts_in_run, attempts, webhook_key, last_attempt_at";
    const row = `1 + i % 2, ${seq} + i::bigint, ${seq} + i::bigint, 1, 1, 1, case when i / 2 % 10 = 0 then 2 else 1 end, i`;
    const numbers = (from: number, to: number) => `generate_series(${from}, ${to}) i`;
    await pool.write(
      `insert into delivery (${columns}, state, finished_at) select ${row}, 1, i from ${numbers(1, ended)}`,
    );
    await pool.write(
      `insert into pending (${columns}, next_attempt_at) select ${row}, i from ${numbers(ended + 1, ended + 200)}`,
    );
    await pool.write(
      `insert into attempt (tenant_key, event_seq, key, webhook_key, number, started_at, duration_ms, status_code)
       select 1 + i % 2, ${seq} + i::bigint, 1, 1, 1, i, 1, 204 from ${numbers(1, ended)}`,
    );
    await pool.write("analyze");
  }

  const delivery = "delivery_2026_11_tenant_key_event_seq_key_state_webhook_key_idx";

  test.each([2_000, 40_000])("cost what is walked and what is shown, of %i records", async (ended) => {
    const pool = await open();
    await fill(pool, ended);
    const scans = await scansOf(pool, latestText, 1, "{1,2}", 500, 50);
    expect(scans).toEqual([
      { table: "pending", index: "pending_by_tenant", rows: 100 },
      { table: "delivery_2026_11", index: delivery, rows: 500 },
      { table: "delivery_2026_11", index: delivery, rows: 40 },
    ]);
  });

  test.each([2_000, 40_000])(
    "the statuses of the newest attempts are found by event, of %i attempts",
    async (ended) => {
      const pool = await open();
      await fill(pool, ended);
      const scans = await scansOf(pool, statusesText, 1, "{1,1}", "{4,1000}", `{${seq + 4},${seq + 1000}}`);
      expect(scans).toEqual([{ table: "attempt_2026_11", index: "attempt_2026_11_pkey", rows: 2 }]);
    },
  );
});
