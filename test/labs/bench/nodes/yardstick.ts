import { readFileSync } from "node:fs";
import { systemClock } from "../../../../src/lib/clock.ts";
import { migrate } from "../../../../src/store/postgres/migrations.ts";
import { arrayText, packBytes } from "../../../../src/store/postgres/parameters.ts";
import { makePartitions } from "../../../../src/store/postgres/partitions.ts";
import { byKeys } from "../../../../src/store/postgres/planner.ts";
import { createPool, type Pool } from "../../../../src/store/postgres/pool.ts";
import { administer, type OwnServer } from "../../../support/postgres-server.ts";
import { tenantCount } from "../event.ts";

/**
 * What the rows of an event cost a server by themselves: one statement accepts a batch, one settles it, into the tables of the
 * product, and nothing is decided, looked up, counted for charts or told to anybody. Measured beside a run, at its rate and
 * with its batches, because the same statements cost a server that is seldom asked, or shares its processors, two or three
 * times what they cost one that does nothing else.
 */
export interface Yardstick {
  /** @returns processor time of the server for an event, in µs */
  measure(load: YardstickLoad): Promise<number>;
  close(): Promise<void>;
}

export interface YardstickLoad {
  /** Each has a connection that accepts and one that settles. */
  nodes: number;
  /** Events a second, of all nodes. */
  rate: number;
  /** Events in a statement. */
  batch: number;
  seconds: number;
}

const databaseName = "yardstick";
const incarnation = 1;
const tailBytes = 8;
const payloadBytes = 300;
const answer = "\\x6f6b";
const enough = 2 ** 40;
const warmSeconds = 1;

const mark =
  "update lane set batch = $3::bigint where slot = $1::smallint and incarnation = $2::int and batch = $3::bigint - 1 returning 1";

const acceptText = `with m as (${mark}),
  taken as (
    update usage set used = used + n, events = events + n, pending = pending + n
    from m, unnest($4::bigint[], $5::int[]) as given (of_tenant, n)
    where tenant_key = of_tenant and slot = $1::smallint and used + n <= granted),
  stored as (
    insert into event (seq, tenant_key, id_tail, payload)
    select seq, of_tenant, substring($8::bytea from (i::int - 1) * ${tailBytes} + 1 for ${tailBytes}),
      substring($9::bytea from (i::int - 1) * ${payloadBytes} + 1 for ${payloadBytes})
    from m, unnest($6::bigint[], $7::bigint[]) with ordinality as given (of_tenant, seq, i)),
  queued as (
    insert into pending (tenant_key, event_seq, key, webhook_key, run, attempts_in_run, attempts, owner, next_attempt_at)
    select of_tenant, seq, seq, of_tenant, 1, 0, 0, $2::int, $10::bigint
    from m, unnest($6::bigint[], $7::bigint[]) as given (of_tenant, seq))
  select 1 from m`;

const settleText = `with m as (${mark}),
  ended as (
    delete from pending using m, unnest($6::bigint[], $7::bigint[]) as given (of_tenant, seq)
    where tenant_key = of_tenant and event_seq = seq and key = seq and run = 1 and owner = $2::int
    returning tenant_key, event_seq, key, webhook_key),
  history as (
    insert into delivery (tenant_key, event_seq, key, webhook_key, run, attempts_in_run, attempts, last_attempt_at,
      status_code, state, finished_at)
    select tenant_key, event_seq, key, webhook_key, 1, 1, 1, $8::bigint, 200, 1, $8::bigint from ended),
  log as (
    insert into attempt (event_seq, tenant_key, key, webhook_key, number, started_at, duration_ms, status_code,
      response_body)
    select event_seq, tenant_key, key, webhook_key, 1, $8::bigint, 5, 200, '${answer}' from ended),
  counted as (
    update usage set pending = pending - n, delivered = delivered + n
    from m, unnest($4::bigint[], $5::int[]) as given (of_tenant, n)
    where tenant_key = of_tenant and slot = $1::smallint)
  select 1 from m`;

export async function createYardstick(server: OwnServer, mostNodes: number): Promise<Yardstick> {
  await administer(server, `create database ${databaseName}`);
  const url = server.url(databaseName);
  await migrate({ url, clock: systemClock });
  const pool = createPool({ url, size: 1, clock: systemClock });
  await makePartitions(pool, "month", systemClock.now());
  const slots = Array.from({ length: 2 * mostNodes }, (_, slot) => slot);
  const tenants = Array.from({ length: tenantCount }, (_, i) => i + 1);
  await pool.write(
    `insert into lane (slot, incarnation, batch) select slot, ${incarnation}, 0 from unnest($1::int[]) slot`,
    [arrayText(slots)],
  );
  await pool.write(
    `insert into usage select key, slot, 0, 0, ${enough}, 0, 0, 0, 0 from unnest($1::bigint[]) key, unnest($2::int[]) slot`,
    [arrayText(tenants), arrayText(slots)],
  );
  await pool.close();
  let seq = systemClock.now() * 2048;
  const lanes = await Promise.all(slots.map((slot) => openLane(url, slot)));

  /** What both statements are given of a batch. */
  function makeBatch(size: number): string[] {
    const ofTenants = Array.from({ length: size }, () => Math.ceil(Math.random() * tenantCount));
    const counts = new Map<number, number>();
    for (const key of ofTenants) counts.set(key, (counts.get(key) ?? 0) + 1);
    const seqs = ofTenants.map(() => {
      seq += 1;
      return seq;
    });
    return [[...counts.keys()], [...counts.values()], ofTenants, seqs].map(arrayText);
  }

  return {
    async measure({ nodes, rate, batch, seconds }) {
      const size = Math.max(1, Math.round(batch));
      const everyMs = (size * nodes * 1000) / rate;
      const bytesOf = (length: number) => packBytes(Array.from({ length: size }, () => new Uint8Array(length))).bytes;
      const tails = bytesOf(tailBytes);
      const payloads = bytesOf(payloadBytes);
      const busy = lanes.slice(0, 2 * nodes);
      const cpu = () => busy.reduce((sum, { pid }) => sum + cpuUs(pid), 0);
      let events = 0;
      let before = 0;
      const startMs = performance.now();
      const measureFromMs = startMs + warmSeconds * 1000;
      const endMs = measureFromMs + seconds * 1000;

      async function relay(node: number): Promise<void> {
        const [accepting, settling] = [busy[2 * node], busy[2 * node + 1]];
        if (!accepting || !settling) throw new Error(`The yardstick has no lanes for ${nodes} nodes`);
        let settled: Promise<unknown> = Promise.resolve();
        for (let dueMs = startMs + (everyMs * node) / nodes; dueMs < endMs; dueMs += everyMs) {
          await Bun.sleep(Math.max(0, dueMs - performance.now()));
          if (before === 0 && performance.now() >= measureFromMs) before = cpu();
          const given = makeBatch(size);
          const now = systemClock.now();
          await accepting.write(acceptText, [...given, tails, payloads, now]);
          await settled;
          settled = settling.write(settleText, [...given, now]);
          if (before > 0) events += size;
        }
        await settled;
      }
      await Promise.all(Array.from({ length: nodes }, (_, node) => relay(node)));
      return (cpu() - before) / events;
    },
    close: async () => void (await Promise.all(lanes.map((lane) => lane.close()))),
  };
}

async function openLane(url: string, slot: number) {
  const pool: Pool = createPool({ url, size: 1, clock: systemClock, settings: byKeys });
  const [row] = await pool.read<{ pid: number }>("select pg_backend_pid() as pid");
  let batch = 0;
  return {
    pid: row?.pid ?? Number.NaN,
    async write(text: string, values: readonly (string | number | Uint8Array)[]) {
      batch += 1;
      const rows = await pool.write(text, [slot, incarnation, batch, ...values]);
      if (rows.length !== 1) throw new Error(`The yardstick's lane ${slot} has lost count`);
    },
    close: pool.close,
  };
}

/** Processor time of a process, finer than the hundredths of a second of its `stat`. */
const cpuUs = (pid: number): number => Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1000;
