import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { systemClock } from "../../../src/lib/clock.ts";
import { webhookMinutes } from "../../../src/store/minute-tables.ts";
import { needleOf, sliceRecords } from "../../../src/store/search.ts";
import { acceptanceVerbs } from "../../../src/store/sqlite/acceptance.ts";
import { createAuditLog } from "../../../src/store/sqlite/audit-log.ts";
import { createBillingRows } from "../../../src/store/sqlite/billing-rows.ts";
import { createCancelledRuns } from "../../../src/store/sqlite/cancelled-runs.ts";
import type { Connection } from "../../../src/store/sqlite/connection.ts";
import { deliveryVerbs } from "../../../src/store/sqlite/deliveries.ts";
import { eventVerbs } from "../../../src/store/sqlite/events.ts";
import { createFailureLedger } from "../../../src/store/sqlite/failure-ledger.ts";
import { createFiling } from "../../../src/store/sqlite/filing.ts";
import { createTenantHolder } from "../../../src/store/sqlite/held-tenants.ts";
import { inboxVerbs } from "../../../src/store/sqlite/inbox.ts";
import { maintenanceVerbs } from "../../../src/store/sqlite/maintenance.ts";
import { oldMinutes } from "../../../src/store/sqlite/minute-rows.ts";
import { keptAnswers, oldEvents } from "../../../src/store/sqlite/old-events.ts";
import { openDatabase } from "../../../src/store/sqlite/open.ts";
import { createBooksFile } from "../../../src/store/sqlite/open-books.ts";
import { createOwnership } from "../../../src/store/sqlite/ownership.ts";
import { createQueries } from "../../../src/store/sqlite/queries.ts";
import { queueVerbs } from "../../../src/store/sqlite/queue.ts";
import { queueDepth } from "../../../src/store/sqlite/queue-depth.ts";
import { createReader } from "../../../src/store/sqlite/reader.ts";
import { createReplayLedger } from "../../../src/store/sqlite/replay-ledger.ts";
import { replayVerbs } from "../../../src/store/sqlite/replays.ts";
import { retentionVerbs } from "../../../src/store/sqlite/retention.ts";
import { createRowKeys } from "../../../src/store/sqlite/row-keys.ts";
import { createSandboxBooks } from "../../../src/store/sqlite/sandbox-books.ts";
import { statVerbs } from "../../../src/store/sqlite/stats.ts";
import { createWaitingRecords } from "../../../src/store/sqlite/waiting-records.ts";
import { webhookVerbs } from "../../../src/store/sqlite/webhooks.ts";
import type { Writer } from "../../../src/store/sqlite/writer.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { useSqlite } from "../../support/sqlite-store.ts";

const sqlite = useSqlite();

describe("query plans", () => {
  /** A tenant with a record that has been delivered. */
  function openWithOneRecord(): Database {
    const client = openEmpty();
    client.run(
      "insert into tenant (key, id, name, email, tier, password_hash, created_at) values (1, 't', '', '', 'free', '', 0)",
    );
    client.run("insert into event (seq, tenant_key, id_tail, payload) values (1, 1, x'00', x'00')");
    client.run(
      `insert into delivery (key, tenant_key, event_seq, webhook_key, state, run, attempts_in_run, attempts, last_attempt_at,
         finished_at) values (1, 1, 1, 1, 1, 1, 1, 1, 5, 6)`,
    );
    return client;
  }

  function openEmpty(): Database {
    const client = openDatabase({ dataDir: sqlite.emptyDir() });
    sqlite.cleanUpFirst(() => client.close());
    return client;
  }

  /** Every statement that `run` sends. */
  function statementsOf(run: (client: Database) => void, client: Database): string[] {
    const statements: string[] = [];
    const recording = new Proxy(client, {
      get(target, name) {
        const value = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        if (name !== "prepare" && name !== "query") return value.bind(target);
        return (sql: string, ...rest: unknown[]) => {
          statements.push(sql);
          return value.call(target, sql, ...rest);
        };
      },
    });
    run(recording);
    return statements;
  }

  /** The plans of every statement that `run` sends. */
  function plansOf(run: (client: Database) => void, client = openEmpty()): string[] {
    return statementsOf(run, client).map((sql) => {
      const numbered = [...sql.matchAll(/\?(\d+)/g)].map(([, number]) => Number(number));
      const length = Math.max(0, ...numbered) || [...sql.matchAll(/\?/g)].length;
      const steps = client
        .prepare<{ detail: string }, null[]>(`explain query plan ${sql}`)
        .all(...Array(length).fill(null));
      return steps.map(({ detail }) => detail).join("; ");
    });
  }

  const filter = { tenantKey: 1 };
  const inRange = { ...filter, fromSeq: 1, toSeq: 2 };
  const ofWebhooks = { ...inRange, webhookKeys: [1] };
  const byTenant = "USING COVERING INDEX delivery_by_tenant (tenant_key=?";
  const byCode = "USING COVERING INDEX delivery_by_code (tenant_key=? AND error_code=?";
  const byReplay = "INDEX delivery_by_replay (tenant_key=? AND replay_key=?";
  const timeout = { code: "timeout", status: null } as const;
  const answered503 = { code: "http_status", status: 503 } as const;
  const byState = "USING COVERING INDEX delivery_by_state (tenant_key=? AND state=?";

  test.each([
    ["list", filter, byTenant],
    ["list in a range", inRange, byTenant],
    ["list of a webhook", ofWebhooks, byTenant],
    ["state list", { ...filter, state: 2 }, byState],
    ["state list in a range", { ...inRange, state: 2 }, byState],
    ["list of a code", { ...filter, failure: timeout }, byCode],
    ["state list of a status", { ...filter, state: 2, failure: answered503 }, byCode],
    ["list of a status with all the others", { ...ofWebhooks, state: 0, typeHash: 7, failure: answered503 }, byCode],
    ["list of a replay", { ...filter, replayKey: 5 }, `COVERING ${byReplay}`],
    ["state list of a replay", { ...ofWebhooks, state: 2, typeHash: 7, replayKey: 5 }, `COVERING ${byReplay}`],
    ["list of a code of a replay", { ...filter, state: 2, failure: timeout, replayKey: 5 }, byReplay],
  ])("the %s walks its index, without sorting", (_, filter, index) => {
    const [keys, ...joined] = plansOf((client) => {
      const queries = createQueries(drizzle({ client }));
      queries.pagePlaces({ filter, offset: 0, limit: 10 });
    });
    expect(keys).toContain(index);
    expect(keys).not.toContain("TEMP B-TREE");
    expect(joined).toEqual([]);
  });

  test.each([
    ["the list of webhooks", (connection: Connection) => void webhookVerbs(connection)],
    ["what a transaction knows of a tenant", ({ client }: Connection) => void createTenantHolder(client)],
  ])("%s is read without a look at those that were removed", (_, prepare) => {
    const plans = plansOf((client) => prepare(connectionTo(client))).filter((plan) => plan.includes(" webhook "));
    expect(new Set(plans)).toEqual(new Set(["SEARCH webhook USING INDEX webhook_registered (tenant_key=?)"]));
  });

  test("the webhooks of a filter are found without a walk through all that the account ever had", () => {
    const plans = plansOf((client) => {
      createQueries(drizzle({ client })).webhookKeys({ tenantKey: 1, idOrUrl: "https://a.example" });
    });
    expect(plans).toEqual([
      "SEARCH webhook USING COVERING INDEX webhook_by_id (tenant_key=? AND id=?)",
      "SEARCH webhook USING COVERING INDEX webhook_by_url (tenant_key=? AND url=?)",
    ]);
  });

  test.each([
    ["list", filter, byTenant],
    ["state list", { ...filter, state: 2 }, byState],
  ])("the %s is walked from the end that is nearer, in the same index", (_, filter, index) => {
    const walk = (offset: number, total?: number) => {
      const sent: unknown[][] = [];
      const plans = plansOf((client) => {
        const logger = { logQuery: (_sql: string, params: unknown[]) => void sent.push(params) };
        const queries = createQueries(drizzle({ client, logger }));
        queries.pagePlaces({ filter, offset, limit: 10, ...(total !== undefined && { total }) });
      });
      expect(plans.join()).toContain(index);
      expect(plans.join()).not.toContain("TEMP B-TREE");
      const [limit, rows = 0] = sent[0]?.slice(Object.keys(filter).length) ?? [];
      return { limit, rows };
    };
    expect(walk(700)).toEqual({ limit: 10, rows: 700 });
    expect(walk(450, 1_000)).toEqual({ limit: 10, rows: 450 });
    expect(walk(700, 1_000)).toEqual({ limit: 10, rows: 290 });
    expect(walk(995, 1_000)).toEqual({ limit: 5, rows: 0 });
  });

  test("a list without payloads does not ask for them", () => {
    const client = openWithOneRecord();
    const queries = createQueries(drizzle({ client }));
    const columnsOf = (payload: "whole" | "none") =>
      queries
        .records({ keys: [{ key: 1, eventSeq: 1 }], tenantKey: 1, bytes: 1, payload, state: null, errorCode: null })
        .rows.map(({ payload }) => payload !== null);
    expect([columnsOf("whole"), columnsOf("none")]).toEqual([[true], [false]]);
  });

  test.each([
    [
      "countEvents",
      { tenantKey: 1, fromSeq: 1, toSeq: 2 },
      "COVERING INDEX delivery_by_tenant (tenant_key=? AND event_seq>? AND event_seq<?)",
    ],
    [
      "countEvents",
      { tenantKey: 1, state: 2, fromSeq: 1, toSeq: 2 },
      "COVERING INDEX delivery_by_state (tenant_key=? AND state=? AND event_seq>? AND event_seq<?)",
    ],
    ["countEvents", { ...filter, typeHash: 7 }, "COVERING INDEX delivery_by_tenant (tenant_key=?)"],
    ["countUpTo", { filter, limit: 5 }, "COVERING INDEX delivery_by"],
    ["countUpTo", { filter: { ...filter, state: 2, failure: answered503 }, limit: 5 }, byCode],
  ] as const)("%s stays inside an index", (name, params, index) => {
    const [plan] = plansOf((client) => {
      const queries = createQueries(drizzle({ client }));
      (queries[name] as (params: unknown) => unknown)(params);
    });
    expect(plan).toContain(index);
    expect(plan).not.toContain("TEMP B-TREE");
  });

  test("which of many events have no payload is asked of each by its number", () => {
    const [plan] = plansOf((client) => void createQueries(drizzle({ client })).countErased({ ...filter, state: 2 }));
    expect(plan).toContain("COVERING INDEX delivery_by_state");
    expect(plan).toContain("SEARCH event USING INTEGER PRIMARY KEY (rowid=?)");
    expect(plan).not.toContain("SCAN event");
  });

  test("no statement that is prepared for the queue, replays, erasure, charts, inbox or sandbox scans or sorts a table that grows", () => {
    const plans = plansOf((client) => {
      const connection = connectionTo(client);
      const ledger = createReplayLedger(client);
      const failures = createFailureLedger(client);
      const waiting = createWaitingRecords(connection, ledger, failures);
      queueVerbs(connection, waiting, createCancelledRuns(connection, failures));
      queueDepth(client);
      deliveryVerbs(connection, ledger, failures, waiting, { mayGrow: () => true });
      replayVerbs(connection, ledger, failures, { mayGrow: () => true });
      acceptanceVerbs(connection, failures, { mayGrow: () => true });
      eventVerbs(connection, createFakeClock());
      maintenanceVerbs(connection, { checkpoints: "own" });
      retentionVerbs(connection, failures);
      for (const withPayload of [true, false]) {
        const accounts = { kind: "except", tenantKeys: [] } as const;
        oldEvents(client, { afterSeq: 0, before: 1, accounts, withPayload, limit: 1 });
      }
      keptAnswers(client, { after: null, before: 1, now: 1 });
      createSandboxBooks(connection);
      inboxVerbs(connection);
      statVerbs(connection);
    });
    expect(plans.length).toBeGreaterThan(50);
    for (const step of [
      "SEARCH d USING INDEX delivery_due (webhook_key=? AND next_attempt_at<?)",
      "SEARCH delivery USING COVERING INDEX delivery_due (webhook_key=? AND next_attempt_at>?)",
      "SEARCH delivery USING COVERING INDEX delivery_due (webhook_key>?)",
      "SEARCH delivery USING INDEX delivery_to_return (replay_key=?)",
      "SEARCH delivery USING COVERING INDEX delivery_due (webhook_key=?)",
      "SEARCH delivery USING COVERING INDEX delivery_by_tenant (tenant_key=? AND event_seq>? AND event_seq<?)",
      "SEARCH delivery USING COVERING INDEX delivery_by_tenant (tenant_key=?)",
      "SEARCH delivery USING INDEX delivery_by_state (tenant_key=? AND state=? AND event_seq>? AND event_seq<?)",
      "SEARCH delivery USING INDEX delivery_by_tenant (tenant_key=? AND event_seq=?)",
      // What has waited longest: in the order of the index, so that the first entry is the answer.
      "SEARCH delivery USING COVERING INDEX delivery_by_state (tenant_key=? AND state=?)",
    ]) {
      expect(plans.filter((plan) => plan.includes(step))).not.toEqual([]);
    }
    // Of old events, from the one on that was looked at last.
    expect(
      plans.filter((plan) => plan.startsWith("SEARCH event USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)")),
    ).toHaveLength(2);
    const growing =
      /SCAN (event|d|delivery|attempt|replay|idempotency|stat|webhook|tenant|signing_\w+|login_address|sandbox_\w+|inbox_\w+)\b(?! USING (COVERING )?INDEX \w+_(to|due))/;
    expect(plans.filter((plan) => growing.test(plan))).toEqual([]);
    expect(plans.filter((plan) => plan.includes("TEMP B-TREE") && !plan.includes("replay_to_queue"))).toEqual([]);
  });

  test("no row of an event is written by way of a temporary table", () => {
    const client = openEmpty();
    const statements = statementsOf((recording) => {
      const connection = connectionTo(recording);
      const ledger = createReplayLedger(recording);
      const failures = createFailureLedger(recording);
      const waiting = createWaitingRecords(connection, ledger, failures);
      deliveryVerbs(connection, ledger, failures, waiting, { mayGrow: () => true });
      acceptanceVerbs(connection, failures, { mayGrow: () => true });
    }, client);
    const writes = statements.filter((sql) =>
      /^\s*(insert into|update) (event|delivery|attempt|tenant_usage)\b/.test(sql),
    );
    expect(writes.length).toBeGreaterThan(8);
    const viaTable = writes.filter((sql) => {
      const steps = client.query<{ opcode: string }, []>(`explain ${sql}`).all();
      return steps.some(({ opcode }) => opcode === "OpenEphemeral");
    });
    expect(viaTable).toEqual([]);
  });

  test("groups of failures are read by the group, and their events inside an index", () => {
    const client = openWithOneRecord();
    client.run("update delivery set failure_key = 7");
    const plans = plansOf((recording) => {
      const queries = createQueries(drizzle({ client: recording }));
      queries.failureGroups({ tenantKey: 1, fromHour: 0, toHour: 9, webhookKeys: [1] });
      queries.failurePlaces({ tenantKey: 1, fromHour: 0, toHour: 9, failureKeys: [7], newest: 500 });
      queries.failedEvents([1]);
    }, client);
    const inGroup =
      "SEARCH delivery USING COVERING INDEX delivery_by_failure (tenant_key=? AND failure_key=? AND event_seq>? AND event_seq<?)";
    expect(plans).toEqual([
      expect.stringContaining(
        "SEARCH c USING INDEX sqlite_autoindex_failure_count_1 (tenant_key=? AND failure_key=? AND hour>? AND hour<?)",
      ),
      inGroup,
      inGroup,
      expect.stringContaining("SEARCH event USING INTEGER PRIMARY KEY (rowid=?)"),
    ]);
    expect(plans[0]).toContain("SEARCH failure_group USING INDEX sqlite_autoindex_failure_group_1 (tenant_key=?)");
  });

  test("a search walks the index of its list, and reads its events one by one", () => {
    const plans = plansOf((recording) => {
      const queries = createQueries(drizzle({ client: recording }));
      queries.searchSlice({
        filter: { ...filter, failure: answered503 },
        needle: needleOf("x"),
        records: sliceRecords,
      });
    }, openWithOneRecord());
    expect(plans).toEqual([expect.stringContaining(byCode), "SEARCH event USING INTEGER PRIMARY KEY (rowid=?)"]);
  });

  test("a chart reads the minutes of its tenant and range, and sorts nothing", () => {
    const [plan] = plansOf((client) => {
      const range = { tenantKey: 1, from: 1, to: 2, bucketMinutes: 1 };
      createQueries(drizzle({ client })).stats(range);
    });
    expect(plan).toBe("SEARCH stat USING INDEX sqlite_autoindex_stat_1 (tenant_key=? AND minute>? AND minute<?)");
  });

  test("a webhook's chart reads the minutes of each of its keys and no others", () => {
    const plans = plansOf((client) => {
      const range = { tenantKey: 1, webhookKeys: [2, 3], from: 1, to: 2, bucketMinutes: 1 };
      createQueries(drizzle({ client })).webhookStats(range);
    });
    const search =
      "SEARCH webhook_stat USING INDEX sqlite_autoindex_webhook_stat_1 (tenant_key=? AND webhook_key=? AND minute>? AND minute<?)";
    expect(plans).toEqual([search, search]);
  });

  test("old minutes are found without a walk through those of others", () => {
    const plans = plansOf((client) => {
      // They are prepared, and none is run.
      oldMinutes({ client, writer: null as never, hold: null as never }, webhookMinutes);
    });
    const index = "USING COVERING INDEX sqlite_autoindex_webhook_stat_1";
    expect(plans.slice(0, 3)).toEqual([
      `SEARCH webhook_stat ${index} ((tenant_key,webhook_key)>(?,?))`,
      `SEARCH webhook_stat ${index} (tenant_key=? AND webhook_key=?)`,
      `SEARCH webhook_stat ${index} (tenant_key=? AND webhook_key=? AND minute>? AND minute<?)`,
    ]);
  });

  test("the health of webhooks is walked in the covering index, and its attempts are found by their event", () => {
    const client = openWithOneRecord();
    // A statement is only sent when the one before it has found something.
    const plans = plansOf((recording) => {
      const query = { tenantKey: 1, webhookKeys: [1], records: 100, walked: 5000 };
      createQueries(drizzle({ client: recording })).webhookHealth(query);
    }, client);
    expect(plans).toEqual([
      expect.stringContaining("SEARCH delivery USING COVERING INDEX delivery_by_tenant (tenant_key=?)"),
      expect.stringContaining("SEARCH delivery USING INTEGER PRIMARY KEY (rowid=?)"),
      "SEARCH attempt USING INDEX attempt_by_event (event_seq=?)",
    ]);
    expect(plans.join()).not.toContain("TEMP B-TREE FOR ORDER");
  });

  test("removing the rows of a tenant looks for children by index only", () => {
    const client = openDatabase({ dataDir: sqlite.emptyDir() });
    sqlite.cleanUpFirst(() => client.close());
    const tables = client.query<{ name: string }, []>("select name from sqlite_schema where type = 'table'").all();
    for (const { name } of tables) {
      const keys = client
        .query<{ id: number; from: string }, []>(
          `select id, "from" from pragma_foreign_key_list('${name}') order by id, seq`,
        )
        .all();
      for (const columns of Map.groupBy(keys, ({ id }) => id).values()) {
        const where = columns.map(({ from }) => `${from} = 1`).join(" and ");
        const plan = client
          .query<{ detail: string }, []>(`explain query plan select 1 from ${name} where ${where}`)
          .get();
        expect([name, plan?.detail]).toEqual([name, expect.stringContaining("SEARCH")]);
      }
    }
  });

  /** Enough to prepare statements: nothing is run. */
  function connectionTo(client: Database): Connection {
    const db = drizzle({ client });
    const writer: Writer = { submit: () => Promise.reject(), lagMs: () => 0, close: async () => {} };
    const reader = createReader("");
    const hold = createTenantHolder(client);
    const billing = createBillingRows(client);
    const books = createBooksFile(client, hold, billing);
    const audit = createAuditLog(client);
    const rowKeys = createRowKeys(client);
    const reportDamage = () => {};
    const filing = createFiling({ client, writer, clock: systemClock, rowKeys, hasRoom: () => true, reportDamage });
    const rows = { hold, rowKeys, ownership: createOwnership(), filing, billing, books, audit };
    return { client, db, writer, ...rows, queries: createQueries(db), reader, reportDamage };
  }
});
