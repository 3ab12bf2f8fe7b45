import { afterAll, beforeAll, expect, test } from "bun:test";
import { type DeliveryState, deliveryStates } from "../../../src/domain/delivery.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { firstSeqAt } from "../../../src/lib/id.ts";
import { webhookMinutes } from "../../../src/store/minute-tables.ts";
import { attemptKeysText, ownersText, previewText, recordKeysText } from "../../../src/store/postgres/events.ts";
import {
  countedText,
  eventsText as failedEventsText,
  placesText as failurePlacesText,
} from "../../../src/store/postgres/failures.ts";
import { firstText, firstWithinHourText, nextText } from "../../../src/store/postgres/old-minutes.ts";
import { makePartitions } from "../../../src/store/postgres/partitions.ts";
import { createPool, type Pool } from "../../../src/store/postgres/pool.ts";
import { attemptsText, recordsText } from "../../../src/store/postgres/record-rows.ts";
import { countText, placesText, webhookKeysText } from "../../../src/store/postgres/record-walks.ts";
import { keysOfWebhookText } from "../../../src/store/postgres/replay-selection.ts";
import {
  keptAnswersText,
  lookedToText,
  measuredText,
  oldEventsText,
  oldRecordsTexts,
} from "../../../src/store/postgres/retention.ts";
import { foundText } from "../../../src/store/postgres/search-slice.ts";
import { minutesText, refusedText, waitingText, webhookMinutesText } from "../../../src/store/postgres/stats.ts";
import { createMigratedDatabase, describeWithPostgres, type TestDatabase } from "../../support/postgres.ts";

const seq = firstSeqAt(Date.UTC(2026, 10, 22));
const range = [1, 0, Number.MAX_SAFE_INTEGER];

/** `delivery_by_tenant` and `delivery_failed` as they are called in a partition. */
const byTenant = "_tenant_key_event_seq_key_state_webhook_key_idx";
const byCode = "_tenant_key_error_code_event_seq_key_";
const failed = "_tenant_key_event_seq_key_webhook_key_idx";

/** Indexes of the lists by state; `undefined` is the list of all. */
const walked = {
  undefined: ["pending_by_tenant", byTenant],
  PENDING: ["pending_by_tenant"],
  DELIVERED: [byTenant],
  FAILED: [failed],
  SKIPPED: [byTenant],
};

/** By code; what was delivered or skipped has none, and is not asked for. */
const walkedByCode = {
  undefined: ["pending_by_code", byCode],
  DELIVERED: [],
  PENDING: ["pending_by_code"],
  FAILED: [byCode],
  SKIPPED: [],
};

const byReplay = "_tenant_key_replay_key_event_seq_key_";
const walkedByReplay = {
  undefined: ["pending_by_replay", byReplay],
  PENDING: ["pending_by_replay"],
  DELIVERED: [byReplay],
  FAILED: [byReplay],
  SKIPPED: [byReplay],
};

describeWithPostgres.each(["that was just made", "with a history"])("in a database %s", (which) => {
  // One for all, as nothing here writes: to fill it takes seconds.
  let database: TestDatabase;
  let pool: Pool;
  beforeAll(async () => {
    database = await createMigratedDatabase();
    pool = createPool({ url: database.url, size: 1, clock: systemClock });
    await makePartitions(pool, "month", Date.UTC(2026, 10, 22));
    await addWebhooks(pool);
    if (which === "with a history") await fill(pool);
    await pool.write("set plan_cache_mode = force_generic_plan");
  });
  afterAll(async () => {
    await pool.close();
    await database.remove();
  });

  async function planOf(text: string, ...values: (number | string | null)[]): Promise<string> {
    await pool.write(`prepare asked as ${text}`);
    const given = values.map((value) => (typeof value === "string" ? `'${value}'` : (value ?? "null"))).join();
    const plan = await pool.read<Record<string, string>>(`explain execute asked(${given})`);
    await pool.write("deallocate asked");
    return plan.map((row) => row["QUERY PLAN"]).join("\n");
  }

  /** By each of them alone, and by all together. */
  const filters = [
    {},
    { byWebhook: "{1}" },
    { byType: 7 },
    { byWebhook: "{1}", byType: 7 },
    { byCode: "timeout" },
    { byCode: "http_status", byStatus: 503 },
    { byWebhook: "{1}", byType: 7, byCode: "http_status", byStatus: 503 },
    { byReplay: 5 },
    { byWebhook: "{1}", byType: 7, byReplay: 5 },
  ];
  const asked = (filter: (typeof filters)[number]) => ({
    which: {
      byWebhook: "byWebhook" in filter,
      byType: "byType" in filter,
      byCode: "byCode" in filter,
      byStatus: "byStatus" in filter,
      byReplay: "byReplay" in filter,
    },
    given: Object.values(filter),
  });
  const indexesOf = (filter: object, state: DeliveryState | undefined) =>
    "byReplay" in filter
      ? walkedByReplay[`${state}`]
      : "byCode" in filter
        ? walkedByCode[`${state}`]
        : walked[`${state}`];
  const growing = /(Seq Scan|Bitmap Heap Scan) on (event|pending|delivery|attempt|stat)/;

  test.each([undefined, ...deliveryStates])(
    "lists (%p) merge what their indexes hold, and sort nothing",
    async (state) => {
      for (const fromOldest of [false, true]) {
        for (const filter of filters) {
          const { which, given } = asked(filter);
          const plan = await planOf(placesText({ state, ...which, fromOldest }), ...range, ...given, 10, 1_000);
          for (const index of indexesOf(filter, state)) expect(plan).toContain(index);
          expect(plan).not.toMatch(growing);
          // The page itself, when it was found from the oldest.
          const walk = fromOldest ? plan.slice(plan.indexOf("Limit")) : plan;
          expect(walk).not.toContain("Sort  (");
        }
      }
    },
  );

  test("what an account takes is measured along the lists of both tables", async () => {
    const plan = await planOf(measuredText, 1, 0, 1);
    for (const index of ["pending_by_tenant", byTenant]) expect(plan).toContain(index);
    expect(plan).not.toMatch(growing);
    expect(plan.slice(plan.indexOf("Limit"))).not.toContain("Sort  (");
  });

  test.each([undefined, ...deliveryStates])("records (%p) are counted in indexes alone", async (state) => {
    for (const filter of filters) {
      const { which, given } = asked(filter);
      const plan = await planOf(countText({ state, ...which }), ...range, ...given, 10_001);
      for (const index of indexesOf(filter, state)) expect(plan).toContain(index);
      expect(plan).not.toMatch(growing);
    }
  });

  test.each([
    ["of a group of failures", failedEventsText, [1, `{${seq}}`]],
    ["of a search", foundText(1), [8, 1, `{${seq}}`, "\\x00"]],
    ["of a search for two forms of a text", foundText(2), [8, 1, `{${seq}}`, "\\x00", "\\x01"]],
  ] as const)("the events %s are found one by one", async (_, text, values) => {
    const plan = await planOf(text, ...values);
    expect(plan).toMatch(/event_2026_11_pkey .*\n +Index Cond: \(\(seq = \S+\) AND \(tenant_key = \$\d\)\)/);
    expect(plan).not.toMatch(growing);
  });

  test.each([
    ["list", webhookKeysText],
    ["replay", keysOfWebhookText],
  ])("the webhooks of a %s are found by id and by URL, among all that an account ever had", async (_, text) => {
    const plan = await planOf(text, 1, "wh_1");
    for (const index of ["webhook_by_id", "webhook_by_url"]) expect(plan).toContain(index);
  });

  test("the records of a page are found by their places", async () => {
    for (const payload of ["none", "start", "whole"] as const) {
      const plan = await planOf(recordsText(payload), 65_536, 1, `{${seq}}`, "{1}", null, null);
      expect(plan).toMatch(
        /pending_by_tenant on pending .*\n +Index Cond: \(\(tenant_key = \$2\) AND \(event_seq = \S+\) AND \(key = \S+\)\)/,
      );
      expect(plan).toMatch(
        /Scan using delivery_2026_11_tenant_key_event_seq_key_state_webhook_key_idx on delivery_2026_11 .*\n +Index Cond: \(\(tenant_key = \$2\) AND \(event_seq = \S+\) AND \(key = \S+\)\)/,
      );
      expect(plan).toMatch(/event_2026_11_pkey .*\n +Index Cond: \(\(seq = \S+\) AND \(tenant_key = \$2\)\)/);
      expect(plan.includes("Scan using pending_head_of_line on pending head")).toBe(payload === "whole");
      expect(plan).not.toMatch(growing);
    }
  });

  test("old events are walked in the order of their numbers, from the last one that was looked at", async () => {
    const texts = [oldEventsText("except", true), oldEventsText("only", false)];
    const plans = [await planOf(lookedToText, seq, seq + 10 ** 9)];
    for (const text of texts) plans.push(await planOf(text, seq, seq + 10 ** 9, "{1}", 100));
    for (const plan of plans) {
      expect(plan).toMatch(/event_2026_11_pkey .*\n +Index Cond: \(\(seq > \$1\) AND \(seq < \$2\)\)/);
      expect(plan).not.toMatch(growing);
      expect(plan.slice(plan.lastIndexOf("Limit"))).not.toContain("Sort  (");
    }
  });

  test("attempts are walked in the order in which they lie", async () => {
    const plan = await planOf(keptAnswersText, seq, 1, 1, seq + 10 ** 9);
    expect(plan).toMatch(/attempt_2026_11_pkey .*\n +Index Cond: .*event_seq >= \$1/);
    expect(plan).not.toMatch(growing);
    expect(plan).not.toContain("Sort  (");
  });

  test.each(oldRecordsTexts.map((text) => [text]))("records of old events are found by them: %s", async (text) => {
    const plan = await planOf(text, 1, `{${seq}}`, seq, seq);
    expect(plan).toMatch(/pending_by_tenant|_tenant_key_event_seq_key_state_webhook_key_idx/);
    expect(plan).not.toMatch(growing);
  });

  test.each([
    ["attempts of an event", attemptsText, [65_536, 1, seq, "{1}"], ["attempt_2026_11_pkey"]],
    ["the keys of attempts", attemptKeysText, [1, seq], ["event_2026_11_pkey", "attempt_2026_11_pkey"]],
    ["the keys of records", recordKeysText, [1, seq], ["event_2026_11_pkey", "pending_by_tenant", byTenant]],
    ["whose an event is", ownersText, [seq], ["event_2026_11_pkey"]],
    ["what a delivery would be", previewText, [1, seq], ["event_2026_11_pkey", "pending_by_tenant", byTenant]],
    ["what waits", waitingText, [1], ["Index Only Scan Backward using pending_by_tenant"]],
    ["a chart", minutesText, [1, 0, 9], ["stat_tenant_key_minute_slot_pk"]],
    ["a webhook's chart", webhookMinutesText, [1, 0, 9, "{7}"], ["webhook_stat_tenant_key_webhook_key_minute_slot_pk"]],
    ...(
      [
        ["next", nextText, [1, 7]],
        ["first", firstText, [1, 7]],
        ["first within an hour", firstWithinHourText, [1, 7, 0, 60]],
      ] as const
    ).map(
      ([what, textOf, values]) =>
        [
          `the ${what} of a webhook's old minutes`,
          textOf(webhookMinutes),
          values,
          ["webhook_stat_tenant_key_webhook_key_minute_slot_pk"],
        ] as const,
    ),
    ["refused events", refusedText, [1, 202611], ["refused_events_tenant_key_month_reason_slot_pk"]],
    ["groups of failures", countedText, [1, 0, 9, null], ["failure_group_tenant", "failure_count_tenant"]],
    [
      "where their records lie",
      failurePlacesText(500),
      [1, seq, seq, "{7}"],
      ["pending_by_failure", "delivery_2026_11_tenant_key_failure"],
    ],
  ] as const)("%s: by index, in the partition that it lies in", async (_, text, values, indexes) => {
    const plan = await planOf(text, ...values);
    for (const index of indexes) expect(plan).toContain(index);
    expect(plan).not.toMatch(growing);
    expect(plan).not.toContain("2026_12");
  });
});

/** Four accounts with 50,000 events, of which some wait. */
async function fill(pool: Pool): Promise<void> {
  const columns = "tenant_key, event_seq, key, run, attempts_in_run, attempts, webhook_key";
  const seqs = `${seq} + i::bigint * 200000`;
  const n = "generate_series(1, 50000) i";
  await pool.write(`insert into event select ${seqs}, i % 4, '\\x8000000000000000', '\\x7b7d' from ${n}`);
  await pool.write(`insert into pending (${columns}, next_attempt_at)
    select i % 4, ${seqs}, i, 1, 1, 1, i % 3, 0 from ${n} where i % 5 = 0`);
  await pool.write(`insert into delivery (${columns}, state, finished_at)
    select i % 4, ${seqs}, i, 1, 1, 1, i % 3, 1 + (i % 9 = 0)::int, 0 from ${n} where i % 5 <> 0`);
  await pool.write(`insert into attempt (event_seq, tenant_key, key, webhook_key, number, started_at, duration_ms)
    select ${seqs}, i % 4, i, i % 3, 1, 0, 0 from ${n}`);
  await pool.write(`insert into stat select i % 4, i / 4, 0, 1, 1, 1, 1, '[]' from ${n}`);
  await pool.write(`insert into webhook_stat select i % 4, i % 12, i / 12, 0, 1, 1, 1, '[]' from ${n}`);
  await pool.write(`insert into refused_events select i / 4, 202600 + i % 4, 'quota', 0, 1 from ${n}`);
  for (const table of ["event", "pending", "delivery", "attempt", "stat", "webhook_stat", "refused_events"])
    await pool.write(`vacuum analyze ${table}`);
}

async function addWebhooks(pool: Pool): Promise<void> {
  await pool.write("alter table webhook disable trigger all");
  await pool.write(`insert into webhook (tenant_key, key, id, url, name, position, created_at, removed_at)
    select 1, i, 'wh_' || i, 'https://example.com/' || i, '', 0, 1, 1 from generate_series(1, 1000) i`);
  await pool.write("analyze webhook");
}
