import { useEffect, useRef } from "preact/hooks";
import { call } from "../../api/client.ts";
import { type Loaded, useLoaded } from "../../api/load.ts";
import type { Attempt, EventRecord } from "../../api/types.ts";
import { useMessages } from "../../stream/live.ts";

export interface LiveEvent {
  readonly records: readonly EventRecord[];
  /** Of all its records, oldest first. */
  readonly attempts: readonly Attempt[];
}

/** A replay to two webhooks is four messages in a moment. */
const rereadMs = 200;

/** An event as it stands. It is read again when the stream tells of it: what a receiver answered is not in a message. */
export function useLiveEvent(id: string): Loaded<LiveEvent> {
  const loaded = useLoaded<LiveEvent>(`event ${id}`, async (signal) => {
    // The attempts first: the records are never older than they are.
    const attempts = await call<Attempt[]>(`/v1/events/${encodeURIComponent(id)}/attempts`, { signal });
    const records = await call<EventRecord[]>(`/v1/events/${encodeURIComponent(id)}`, { signal });
    return { records, attempts };
  });

  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  useMessages(["delivery.attempted", "delivery.finished"], (messages) => {
    if (timer.current !== undefined || !messages.some((message) => message.data().eventId === id)) return;
    timer.current = setTimeout(() => {
      timer.current = undefined;
      loaded.reload();
    }, rereadMs);
  });
  return loaded;
}
