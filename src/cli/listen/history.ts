import { StartupError } from "../../domain/errors.ts";
import { formatIso } from "../../lib/iso-time.ts";

/** A record of an event, reduced to what matters here. */
export interface HistoryRecord {
  readonly eventId: string;
  readonly targetWebhook: string;
  readonly attempts: number;
  /** Label of the replay that started its current run; null: none did. */
  readonly replayGroupId: string | null;
  /** In ms since the Unix epoch; null before the first attempt. */
  readonly lastAttemptMs: number | null;
}

export interface HistoryDeps {
  /** The answer to a GET as the listening account, however long it takes. */
  get(path: string): Promise<unknown>;
}

/** The account's stored events, as the API lists them. */
export interface History {
  /** Id of the newest event; null when there is none. */
  newestId(): Promise<string | null>;
  /** Records of a list by ingestion time, both bounds inclusive, oldest first, in portions. */
  read(list: HistoryList, fromMs: number, untilMs: number): AsyncGenerator<readonly HistoryRecord[]>;
}

export type HistoryList = "/v1/events" | "/v1/events/state/DELIVERED" | "/v1/events/state/FAILED";

/** Of the 1,000 that are allowed: some 60 KB without payloads, which arrive in time over the slowest link. */
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
   * The lists are newest first and may hold any number of records, so time is cut into windows, oldest first, each small enough
   * for one page: nothing has to be buffered until its turn, and a record that changes state meanwhile does not shift others
   * from one page to the next. Only a single millisecond may take several pages.
   */
  async function* read(list: HistoryList, fromMs: number, untilMs: number): AsyncGenerator<readonly HistoryRecord[]> {
    let from = fromMs;
    let width = untilMs - fromMs;
    while (from <= untilMs) {
      const to = Math.min(untilMs, from + width);
      const window = `${list}?payload=false&size=${pageSize}&from=${formatIso(from)}&to=${formatIso(to)}`;
      const { records, total } = await page(window);
      // How many times wider the window must be for the next page to be well filled. `total` is only counted up to 10,000.
      const factor = Math.min(widestStep, (wellFilled * pageSize) / Math.max(1, total));
      if (total > pageSize && to > from) {
        width = Math.floor((to - from) * factor);
        continue;
      }
      width = Math.floor((to - from + 1) * factor);
      // Reads as far as `total` said, because a page omits what has changed state while it was written; and on to the first page
      // that is not full, because the newest millisecond may still receive events, each of which pushes the oldest one along.
      for (let number = 1; number * pageSize < total || records.length === number * pageSize; number += 1) {
        records.push(...(await page(`${window}&page=${number}`)).records);
      }
      if (records.length > 0) yield records.reverse();
      from = to + 1;
    }
  }

  return {
    async newestId() {
      return (await page("/v1/events?payload=false&size=1")).records[0]?.eventId ?? null;
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
