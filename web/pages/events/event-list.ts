import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "../../api/client.ts";
import { serverNow } from "../../api/server-time.ts";
import type { EventPage } from "../../api/types.ts";
import { useMessages } from "../../stream/live.ts";
import { type Loaded, useLoaded } from "../../stream/load.ts";
import { type Filter, requestOf, urlOf } from "./filter.ts";
import { findList } from "./left-lists.ts";
import {
  aboutOf,
  afterAttempt,
  afterRun,
  attemptedOf,
  findRow,
  finishedOf,
  type Listed,
  type ListedRecord,
  newerOf,
  pairOf,
  toListed,
  withFresh,
} from "./record.ts";

export interface EventList {
  readonly loaded: Loaded<Listed>;
  /** As updated by the stream since. */
  readonly records: readonly ListedRecord[];
  /** Reads what is newest now. */
  loadNewest(): void;
  /** Takes over the records just read for one event. */
  replace(fresh: readonly ListedRecord[]): void;
}

/** The stream may report thousands of attempts a second; rows update only as fast as the eye can follow. */
const redrawMs = 200;

/**
 * A page of the list whose rows stay where they are: it is read again only up to its own first record, and the stream
 * changes only rows that are already shown.
 */
export function useEventList(filter: Filter, entry: string): EventList {
  const [, redraw] = useState(0);
  const told = useRef(new Map<string, ListedRecord>());
  const latest = useRef<Listed | undefined>(undefined);
  const wantsNewest = useRef(false);

  const loaded = useLoaded<Listed>(
    `${entry} ${urlOf(filter)}`,
    async (signal) => {
      const readAt = serverNow();
      const isNewest = wantsNewest.current;
      const before = isNewest ? undefined : latest.current;
      const { path, query } = requestOf(filter, readAt, before?.held ?? "");
      const page = await call<EventPage>(path, { query, signal });
      // It may have been asked for since.
      if (isNewest) wantsNewest.current = false;
      // Set here already, because the next read may begin before this one is rendered.
      latest.current = { ...toListed(page, filter.page === 1, before), readAt };
      return latest.current;
    },
    findList(entry)?.listed,
  );
  latest.current = loaded.data;

  const asRead = loaded.data?.records ?? [];
  const records = asRead.map((record) => newerOf(record, told.current.get(pairOf(record))));

  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => {
    const shown = new Set(loaded.data?.records.map(pairOf));
    for (const pair of told.current.keys()) if (!shown.has(pair)) told.current.delete(pair);
  }, [loaded.data]);

  useMessages(["delivery.attempted", "delivery.finished"], (messages) => {
    const shown = new Set(asRead.map(({ eventId }) => eventId));
    for (const { kind, data } of messages) {
      const news = data();
      if (!shown.has(String(news.eventId))) continue;
      const row = findRow(asRead, aboutOf(news));
      if (!row) continue;
      const record = newerOf(row, told.current.get(pairOf(row)));
      const next =
        kind === "delivery.attempted" ? afterAttempt(record, attemptedOf(news)) : afterRun(record, finishedOf(news));
      if (next === record) continue;
      told.current.set(pairOf(row), next);
      timer.current ??= setTimeout(() => {
        timer.current = undefined;
        redraw((n) => n + 1);
      }, redrawMs);
    }
  });

  useMessages(["deliveries.ended"], loaded.reload);

  return {
    loaded,
    records,
    loadNewest() {
      wantsNewest.current = true;
      loaded.reload();
    },
    replace(fresh) {
      if (loaded.data) loaded.put({ ...loaded.data, records: withFresh(records, fresh) });
      // Its read has just been dropped.
      if (wantsNewest.current) loaded.reload();
    },
  };
}
