import type { Clock } from "../../lib/clock.ts";
import { createSemaphore } from "../../lib/limiter.ts";
import { channelBytes } from "../stream-channel.ts";
import { OutcomeUnknown } from "./faults.ts";
import { packBytes } from "./parameters.ts";
import type { Pool } from "./pool.ts";

/** What this node has to tell those who watch, until it is written: all of a tenant's together, every 50 ms. */
export interface StreamOutbox {
  /** @param make is called only if there is room; if it throws, so does this, and nothing is added */
  add(tenantId: string, make: () => Uint8Array): void;
  /** Writes what was added for a tenant. @throws as `Pool.write` */
  flush(tenantId: string): Promise<void>;
  /** Called when nobody watches the tenant any longer. */
  drop(tenantId: string): void;
  /** Writes what was added, as far as the database answers. */
  close(): Promise<void>;
}

/** Stands for missing messages: a reader that resumes has to fetch everything again. */
export const gap = new Uint8Array(0);

const writeEveryMs = 50;
const pauseAfterFailureMs = 500;
/** Per tenant, on this node; beyond that, its messages are left out for the time below. */
export const mostPerSecond = 5_000;
const leftOutForMs = 1_000;
const atOnce = 1_000;
/** How many tenants are written at a time. */
const concurrency = 2;

interface Waiting {
  messages: Uint8Array[];
  bytes: number;
  /** The second that `inSecond` counts. */
  second: number;
  inSecond: number;
  isLeftOut: boolean;
  flushing: Promise<void> | null;
}

export interface StreamOutboxOptions {
  pool: Pick<Pool, "write">;
  clock: Pick<Clock, "after" | "monotonicMs">;
  /** Called when others can read it. */
  onWritten(tenantId: string): void;
  onFailure(error: unknown): void;
}

export function createStreamOutbox({ pool, clock, onWritten, onFailure }: StreamOutboxOptions): StreamOutbox {
  const waiting = new Map<string, Waiting>();
  const turns = createSemaphore(concurrency);
  let cancelTimer: (() => void) | null = null;
  let closed = false;
  /** After a failure, nothing is written before this time. */
  let restsUntilMs = 0;

  const secondNow = () => Math.floor(clock.monotonicMs() / 1_000);

  function of(tenantId: string): Waiting {
    const present = waiting.get(tenantId);
    if (present) return present;
    const made = { messages: [], bytes: 0, second: 0, inSecond: 0, isLeftOut: false, flushing: null };
    waiting.set(tenantId, made);
    return made;
  }

  function schedule(): void {
    if (closed) return;
    cancelTimer ??= clock.after(writeEveryMs, () => {
      cancelTimer = null;
      if (clock.monotonicMs() >= restsUntilMs) writeAll();
      if (waiting.size > 0) schedule();
    });
  }

  function writeAll(): void {
    for (const [tenantId, one] of waiting) {
      // The failure was reported when it happened; writing resumes after the pause.
      if (one.messages.length > 0) flush(tenantId).catch(() => {});
      else if (!one.isLeftOut && one.flushing === null && one.second < secondNow()) waiting.delete(tenantId);
    }
  }

  function put(one: Waiting, message: Uint8Array): void {
    one.messages.push(message);
    one.bytes += message.length;
    schedule();
  }

  function hasRoom(one: Waiting): boolean {
    if (one.isLeftOut) return false;
    const second = secondNow();
    one.inSecond = one.second === second ? one.inSecond + 1 : 1;
    one.second = second;
    return one.inSecond <= mostPerSecond && one.messages.length < mostPerSecond && one.bytes < channelBytes;
  }

  /** Watchers are told once, when messages resume. */
  function leaveOut(one: Waiting): void {
    one.isLeftOut = true;
    one.messages = [];
    one.bytes = 0;
    clock.after(leftOutForMs, () => {
      one.isLeftOut = false;
      put(one, gap);
    });
  }

  async function write(tenantId: string, one: Waiting): Promise<void> {
    while (one.messages.length > 0) {
      const batch = one.messages.splice(0, atOnce);
      const { bytes, starts, lengths } = packBytes(batch);
      one.bytes -= bytes.length;
      try {
        const written = await pool.write(writeText, [tenantId, batch.length, bytes, starts, lengths]);
        if (written.length > 0) onWritten(tenantId);
      } catch (error) {
        onFailure(error);
        restsUntilMs = clock.monotonicMs() + pauseAfterFailureMs;
        // These may or may not have been written.
        const again = error instanceof OutcomeUnknown ? [gap] : batch;
        one.messages.unshift(...again);
        one.bytes += again.reduce((sum, message) => sum + message.length, 0);
        throw error;
      }
    }
  }

  /** One at a time, so that what was added first gets the lower numbers. */
  async function flush(tenantId: string): Promise<void> {
    const one = waiting.get(tenantId);
    if (!one) return;
    if (one.flushing !== null) {
      await one.flushing;
      return flush(tenantId);
    }
    if (one.messages.length === 0) return;
    one.flushing = turns
      .run(() => write(tenantId, one))
      .finally(() => {
        one.flushing = null;
      });
    await one.flushing;
  }

  return {
    add(tenantId, make) {
      const one = of(tenantId);
      if (one.isLeftOut) return;
      if (hasRoom(one)) put(one, make());
      else leaveOut(one);
    },
    flush,
    drop: (tenantId) => void waiting.delete(tenantId),
    async close() {
      closed = true;
      cancelTimer?.();
      try {
        for (const tenantId of waiting.keys()) await flush(tenantId);
      } catch {
        // The failure has been reported. The others would wait for the same deadline, one after the other.
      }
    },
  };
}

/**
 * Numbers messages while the head is locked, so numbers are in the order of the commits: a reader that has read up to one has
 * read all below it. The tables are unlogged, so no commit waits for the disk. Without a head nobody watches.
 */
export const writeText = `with head as (
    update stream_head set last_id = last_id + $2::int where tenant_id = $1 returning last_id - $2::int as before)
  insert into stream_message (tenant_id, id, body, at)
  select $1, head.before + given.n, substring($3::bytea from given.start for given.length), clock_timestamp()
  from head, unnest($4::int[], $5::int[]) with ordinality as given(start, length, n)
  returning 1`;

/** Writes a gap for everyone who watches on a node other than these. */
export const gapsText = `with head as (
    update stream_head set last_id = last_id + 1
    where tenant_id in (select tenant_id from stream_watch where incarnation <> all($1::int[]))
    returning tenant_id, last_id)
  insert into stream_message (tenant_id, id, body, at) select tenant_id, last_id, '', clock_timestamp() from head`;
