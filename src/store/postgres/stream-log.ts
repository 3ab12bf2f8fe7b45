import type { Clock } from "../../lib/clock.ts";
import { channelMessages, createChannels } from "../stream-channel.ts";
import { encodeText, type StreamLog, type Tail } from "../stream-log.ts";
import { OutcomeUnknown, storageUnavailable } from "./faults.ts";
import { arrayText } from "./parameters.ts";
import type { Pool } from "./pool.ts";
import { createStreamOutbox, gap } from "./stream-outbox.ts";
import type { StreamWatchers } from "./stream-watchers.ts";

/**
 * The messages of a tenant, on any node: `<epoch>-<n>`, where the epoch changes after a crash of the database.
 *
 *   append ─▶ outbox ─ each 50 ms ─▶ written, numbered under the lock of the tenant's head ─▶ notify
 *   tail: told, or each 250 ms ─▶ reads on from its number ─▶ channel ─▶ streams
 *
 * A node keeps what it reads in a channel, as the in-memory log does; where messages are missing it begins a new channel,
 * positioned after all earlier ones, so that every reader is told.
 */
export interface SharedStreamLog extends StreamLog {
  /** Handles what came through `streamChannel`. */
  hear(tenantId: string): void;
  close(): Promise<void>;
}

export interface StreamLogOptions {
  pool: Pool;
  watchers: StreamWatchers;
  clock: Clock;
  onFailure(error: unknown): void;
}

export const streamChannel = "postrider_stream";

const pollEveryMs = 250;
const pauseAfterFailureMs = 2_000;
/** How often to find out who no longer watches, and to remove what is old. */
const tidyEveryMs = 5_000;
const keptFor = "2 minutes";

interface Row {
  epoch: string;
  lastId: number;
  id: number | null;
  body: Uint8Array | null;
}

interface OpenTail extends Tail {
  readonly tenantId: string;
  hasRead(epoch: string, lastId: number): boolean;
  readOn(): Promise<void>;
}

const decoder = new TextDecoder();
const encoder = new TextEncoder();

export function createStreamLog({ pool, watchers, clock, onFailure }: StreamLogOptions): SharedStreamLog {
  const tails = new Map<string, OpenTail>();
  const channels = createChannels();
  const outbox = createStreamOutbox({
    pool,
    clock,
    onFailure,
    onWritten(tenantId) {
      tails.get(tenantId)?.readOn().catch(onFailure);
      if (watchers.isWatchedElsewhere(tenantId))
        pool.read(`select pg_notify('${streamChannel}', $1)`, [tenantId]).catch(onFailure);
    },
  });
  const underWay = new Set<Promise<boolean>>();
  let closed = false;
  let cancelPoll: (() => void) | null = null;
  let cancelTidy = clock.after(tidyEveryMs, tidy);

  /** @returns whether it succeeded */
  function run(step: () => Promise<void>): Promise<boolean> {
    const failed = (error: unknown) => {
      onFailure(error);
      return false;
    };
    const done: Promise<boolean> = step()
      .then(() => true, failed)
      .finally(() => underWay.delete(done));
    underWay.add(done);
    return done;
  }

  function tidy(): void {
    void run(async () => {
      await watchers.look();
      await pool.write(`delete from stream_message where at < clock_timestamp() - interval '${keptFor}'`);
      for (const tenantId of tails.keys()) await pool.write(trimText, [tenantId, channelMessages]);
    }).then(() => {
      if (!closed) cancelTidy = clock.after(tidyEveryMs, tidy);
    });
  }

  function poll(afterMs = pollEveryMs): void {
    if (closed || cancelPoll !== null || tails.size === 0) return;
    cancelPoll = clock.after(afterMs, () => {
      void run(async () => {
        const rows = await pool.read<{ tenantId: string; epoch: string; lastId: number }>(headsText, [
          arrayText([...tails.keys()]),
        ]);
        const heads = new Map(rows.map((row) => [row.tenantId, row]));
        for (const tail of tails.values()) {
          const head = heads.get(tail.tenantId);
          if (!head || !tail.hasRead(head.epoch, head.lastId)) tail.readOn().catch(onFailure);
        }
      }).then((hasAnswered) => {
        cancelPoll = null;
        poll(hasAnswered ? pollEveryMs : pauseAfterFailureMs);
      });
    });
  }

  function createTail(tenantId: string, onMore: () => void): OpenTail {
    let channel = channels.add(0);
    /** The position at which the channel begins. */
    let base = 0;
    let epoch = "";
    let lastRead = 0;
    let isLoaded = false;
    let isForgotten = false;
    let reading: Promise<void> | null = null;
    let next: Promise<void> | null = null;
    const loading = load();
    // A caller of `ready` gets the error, too.
    loading.catch(() => {});

    /** @param since messages up to this number are missing */
    function beginAnew(since: number): void {
      base += channel.end + 1;
      channels.remove(channel);
      channel = channels.add(since);
      lastRead = since;
    }

    function push({ id, body }: Row): void {
      if (id === null || body === null) return;
      if (id !== lastRead + 1) beginAnew(id - 1);
      if (body.length === gap.length) {
        beginAnew(id);
        return;
      }
      const text = decoder.decode(body);
      const end = text.indexOf("\n");
      channels.push(channel, id, encodeText(text.slice(0, end), `${epoch}-${id}`, text.slice(end + 1)));
      lastRead = id;
    }

    /** The first time, and when the head is gone: the database has crashed, or another node has recreated it. */
    async function load(): Promise<void> {
      const { isFirst } = await watchers.begin(tenantId).catch(unavailable);
      const rows = await pool.read<Row>(loadText, [tenantId, channelMessages]);
      if (isForgotten) return;
      const [head] = rows;
      if (!head) throw storageUnavailable("passing");
      const wasLoaded = isLoaded;
      epoch = head.epoch;
      // Before every node knew about the watcher, some messages were dropped.
      const isWhole = !isFirst && !wasLoaded && head.id !== null;
      beginAnew(isWhole && head.id !== null ? head.id - 1 : head.lastId);
      if (isWhole) for (const row of rows) push(row);
      isLoaded = true;
      if (wasLoaded) onMore();
    }

    async function readOnce(): Promise<void> {
      if (isForgotten) return;
      let rows: Row[];
      do {
        rows = await pool.read<Row>(readText, [tenantId, lastRead, channelMessages]);
        if (isForgotten) return;
        const [head] = rows;
        if (!head || head.epoch !== epoch) return load();
        if (head.id === null && head.lastId <= lastRead) return;
        if (head.id === null) beginAnew(head.lastId);
        for (const row of rows) push(row);
        onMore();
      } while (rows.length === channelMessages);
    }

    /** One at a time; a call made while one is in progress gets the one that begins after it. */
    function readOn(): Promise<void> {
      if (!isLoaded) return loading;
      if (reading === null) {
        reading = readOnce().finally(() => {
          reading = null;
        });
        return reading;
      }
      next ??= reading
        .catch(() => {})
        .then(() => {
          next = null;
          return readOn();
        });
      return next;
    }

    return {
      tenantId,
      hasRead: (atEpoch, lastId) => !isLoaded || (atEpoch === epoch && lastId === lastRead),
      readOn,
      get first() {
        return base + channel.first;
      },
      get end() {
        return base + channel.end;
      },
      chunkFrom(position) {
        const { bytes, next: behind } = channel.chunkFrom(position - base);
        return { bytes, next: base + behind };
      },
      positionAfter(id) {
        const [, of, number] = /^(\d{1,15})-(\d{1,15})$/.exec(id) ?? [];
        if (of !== epoch || Number(number) > lastRead) return null;
        const position = channel.positionAfter(Number(number));
        return position === null ? null : base + position;
      },
      endId: () => `${epoch}-${lastRead}`,
      async ready() {
        await loading;
        await outbox.flush(tenantId).catch(unavailable);
        await readOn().catch(unavailable);
      },
      forget() {
        if (isForgotten) return;
        isForgotten = true;
        tails.delete(tenantId);
        channels.remove(channel);
        watchers.end(tenantId);
        if (!watchers.isWatched(tenantId)) outbox.drop(tenantId);
      },
    };
  }

  return {
    append(tenantId, kind, data) {
      if (!watchers.isWatched(tenantId)) return;
      outbox.add(tenantId, () => encoder.encode(`${kind}\n${JSON.stringify(data())}`));
    },
    watch(tenantId, onMore) {
      const tail = createTail(tenantId, onMore);
      tails.set(tenantId, tail);
      poll();
      return tail;
    },
    hear: (tenantId) => void tails.get(tenantId)?.readOn().catch(onFailure),
    async close() {
      closed = true;
      cancelTidy();
      cancelPoll?.();
      await outbox.close();
      await Promise.all([...underWay, watchers.close()]);
    },
  };
}

function unavailable(error: unknown): never {
  throw error instanceof OutcomeUnknown ? storageUnavailable("passing") : error;
}

const headsText = `select tenant_id as "tenantId", epoch, last_id::float8 as "lastId" from stream_head
  where tenant_id = any($1::text[])`;

/** The head and everything above a number, as of one moment. */
export const readText = `select h.epoch, h.last_id::float8 as "lastId", m.id::float8 as id, m.body
  from stream_head h left join lateral (
    select id, body from stream_message where tenant_id = h.tenant_id and id > $2::bigint order by id limit $3::int) m on true
  where h.tenant_id = $1 order by m.id`;

export const loadText = `select h.epoch, h.last_id::float8 as "lastId", m.id::float8 as id, m.body
  from stream_head h left join stream_message m on m.tenant_id = h.tenant_id and m.id > h.last_id - $2::int
    and m.at > clock_timestamp() - interval '${keptFor}'
  where h.tenant_id = $1 order by m.id`;

export const trimText = `delete from stream_message
  where tenant_id = $1 and id <= (select last_id - $2::int from stream_head where tenant_id = $1)`;
