import { StartupError } from "../../domain/errors.ts";
import { formatIso } from "../../lib/iso-time.ts";

/** A record of an event, as far as it matters here. */
export interface HistoryRecord {
  readonly eventId: string;
  readonly targetWebhook: string;
  readonly attempts: number;
  /** Label of the replay that began its run; null: none did. */
  readonly replayGroupId: string | null;
  /** In ms since the Unix epoch; null before the first attempt. */
  readonly lastAttemptMs: number | null;
}

export interface HistoryDeps {
  /** The answer to a GET as the account that listens, waited for as long as it takes. */
  get(path: string): Promise<unknown>;
}

/** The stored events of the account, as the API lists them. */
export interface History {
  /** Id of the newest event; null when there is none. */
  newestId(): Promise<string | null>;
  /** Records of a list by ingestion time, both bounds inclusive, oldest first, some at a time. */
  read(list: HistoryList, fromMs: number, untilMs: number): AsyncGenerator<readonly HistoryRecord[]>;
}

export type HistoryList = "/v1/events" | "/v1/events/state/DELIVERED" | "/v1/events/state/FAILED";

/** A page carries payloads, of 256 KiB each at most by default, so it is kept well below the 1,000 that are allowed. */
const pageSize = 200;
const wellFilled = 0.75;
const widestStep = 8;

export function createHistory({ get }: HistoryDeps): History {
  async function page(path: string): Promise<{ records: HistoryRecord[]; total: number }> {
    const answer = await get(path);
    const { events, total } = (answer ?? {}) as { events?: unknown; total?: unknown };
    if (!Array.isArray(events) || typeof total !== "number")
      throw new StartupError(`GET ${path} did not return a list.`);
    return { records: events.map(readRecord), total };
  }

  /**
   * The lists are newest first and what waits may be any number, so time is cut into windows, the oldest first, each
   * small enough for one page: nothing has to be kept until it is its turn, and a record that changes its state
   * meanwhile moves no other from one page to the next. Only a single millisecond may take several pages.
   */
  async function* read(list: HistoryList, fromMs: number, untilMs: number): AsyncGenerator<readonly HistoryRecord[]> {
    let from = fromMs;
    let width = untilMs - fromMs;
    while (from <= untilMs) {
      const to = Math.min(untilMs, from + width);
      const window = `${list}?size=${pageSize}&from=${formatIso(from)}&to=${formatIso(to)}`;
      const { records, total } = await page(window);
      // Of how many widths the next page would be well filled. `total` is counted to 10,000 only.
      const factor = Math.min(widestStep, (wellFilled * pageSize) / Math.max(1, total));
      if (total > pageSize && to > from) {
        width = Math.floor((to - from) * factor);
        continue;
      }
      width = Math.floor((to - from + 1) * factor);
      // As far as `total` said, since a page leaves out what has moved on while it was written; and to the first page that is
      // not full, since the newest millisecond may still get events, and each moves the oldest one on.
      for (let number = 1; number * pageSize < total || records.length === number * pageSize; number += 1) {
        records.push(...(await page(`${window}&page=${number}`)).records);
      }
      if (records.length > 0) yield records.reverse();
      from = to + 1;
    }
  }

  return {
    async newestId() {
      return (await page("/v1/events?size=1")).records[0]?.eventId ?? null;
    },
    read,
  };
}

function readRecord(value: unknown): HistoryRecord {
  const { eventId, targetWebhook, attempts, replayGroupId, lastAttemptAt } = value as Record<string, unknown>;
  return {
    eventId: String(eventId),
    targetWebhook: String(targetWebhook),
    attempts: Number(attempts),
    replayGroupId: typeof replayGroupId === "string" ? replayGroupId : null,
    lastAttemptMs: typeof lastAttemptAt === "string" ? Date.parse(lastAttemptAt) : null,
  };
}
