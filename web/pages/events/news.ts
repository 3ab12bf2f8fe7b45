import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "../../api/client.ts";
import { serverNow } from "../../api/server-time.ts";
import type { EventPage } from "../../api/types.ts";
import { useMessages } from "../../stream/live.ts";
import { resyncs, type StreamKind, type StreamMessage } from "../../stream/stream.ts";
import type { EventList } from "./event-list.ts";
import { canGrow, type Filter, isAsked, requestOf, urlOf } from "./filter.ts";
import { pairOf } from "./record.ts";

/** What has arrived since a list was read. */
export interface News {
  /** "38 new"; null: nothing. */
  readonly text: string | null;
  forget(): void;
}

/** Beyond this they are neither counted nor remembered. */
const mostNews = 999;
const redrawMs = 250;
/** Each one is a request. */
const askEveryMs = 2_000;

const kinds: Record<Filter["state"], readonly StreamKind[]> = {
  "": ["event.accepted"],
  waiting: ["delivery.attempted", "delivery.finished"],
  delivered: ["delivery.finished"],
  failed: ["delivery.finished"],
  skipped: ["event.accepted"],
};

const words: Record<Filter["state"], string> = {
  "": "new",
  waiting: "newly waiting",
  delivered: "newly delivered",
  failed: "newly failed",
  skipped: "newly skipped",
};

/**
 * Counts what belongs to the list and is not in it yet: events as a rule, records where a state was chosen, each once.
 *
 * @param webhookUrl of the chosen webhook; null: any; undefined: it is no longer registered, or not known yet
 */
export function useNews(filter: Filter, list: EventList, webhookUrl: string | null | undefined): News {
  const key = urlOf(filter);
  const come = useRef(new Set<string>());
  /** Messages were missed, so it is not known how many have arrived. */
  const isUncounted = useRef(false);
  const keyOfNews = useRef(key);
  if (keyOfNews.current !== key) {
    keyOfNews.current = key;
    come.current.clear();
    isUncounted.current = false;
  }
  const [, redraw] = useState(0);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const { data } = list.loaded;

  const isIn = (name: string): boolean =>
    filter.state === ""
      ? name <= (data?.newestId ?? "")
      : (data?.records.some((record) => pairOf(record) === name) ?? false);

  function count(message: StreamMessage): void {
    if (come.current.size > mostNews) return;
    const news = message.data();
    const eventId = String(news.eventId);
    const targetWebhook = String(news.targetWebhook);
    if (filter.state === "") {
      if (!isIn(eventId)) come.current.add(eventId);
      return;
    }
    const pair = pairOf({ eventId, targetWebhook });
    if (webhookUrl !== null && targetWebhook !== webhookUrl) return;
    if (becomes(message.kind, news) === filter.state) {
      if (!isIn(pair)) come.current.add(pair);
    } else come.current.delete(pair);
  }

  // Searching is expensive, and someone who searches is looking for something that already exists.
  const isWatched = () => webhookUrl !== undefined && filter.q === "" && canGrow(filter, serverNow());
  const mustAsk = isAsked(filter) || filter.state === "skipped" || (filter.state === "" && webhookUrl !== null);

  const asking = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(asking.current), [key]);

  useMessages(kinds[filter.state], (messages) => {
    if (!isWatched()) return;
    if (mustAsk) {
      asking.current ??= setTimeout(() => {
        asking.current = undefined;
        void look.current().catch(() => {});
      }, askEveryMs);
      return;
    }
    for (const message of messages) count(message);
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      redraw((n) => n + 1);
    }, redrawMs);
  });
  useEffect(() => () => clearTimeout(timer.current), []);

  // News is compared with each new read of the list.
  useEffect(() => {
    for (const name of come.current) if (isIn(name)) come.current.delete(name);
    redraw((n) => n + 1);
  }, [data]);

  /** After a gap the list stays as it is; the server is asked whether there is anything newer. */
  async function lookForNewer(): Promise<void> {
    if (!data || !isWatched() || isUncounted.current) return;
    const { path, query } = requestOf(filter, serverNow(), "");
    const { events } = await call<EventPage>(path, { query: { ...query, page: 0, size: 1 } });
    if ((events[0]?.eventId ?? "") <= data.newestId) return;
    isUncounted.current = true;
    redraw((n) => n + 1);
  }
  const look = useRef(lookForNewer);
  look.current = lookForNewer;
  // Asks when the user comes back to a list, and after gaps.
  useEffect(() => {
    const ask = () => void look.current().catch(() => {});
    ask();
    let isFirst = true;
    return resyncs.subscribe(() => {
      if (!isFirst) ask();
      isFirst = false;
    });
  }, [key]);

  return {
    text: textOf(come.current.size, isUncounted.current, words[filter.state]),
    forget() {
      come.current.clear();
      isUncounted.current = false;
      redraw((n) => n + 1);
    },
  };
}

function becomes(kind: StreamKind, news: Record<string, unknown>): Filter["state"] {
  if (kind === "delivery.finished") return news.state === "DELIVERED" ? "delivered" : "failed";
  return news.nextAttemptAt === null ? "" : "waiting";
}

function textOf(n: number, isUncounted: boolean, word: string): string | null {
  if (isUncounted) return "New events";
  if (n === 0) return null;
  return `${n > mostNews ? `${mostNews}+` : n} ${word}`;
}
