import { useRef } from "preact/hooks";
import { call } from "../../api/client.ts";
import type { EventRecord } from "../../api/types.ts";
import { useAfter, useRefresh } from "../../stream/live.ts";
import { type Loaded, useLoaded } from "../../stream/load.ts";
import type { StreamMessage } from "../../stream/stream.ts";
import { attemptsAtOnce } from "./attempt-pages.ts";
import { type NewestAttempts, readNewestAttempts } from "./newest-attempts.ts";

/** An event with the attempts of all its records. */
export interface LiveEvent extends NewestAttempts {
  readonly records: readonly EventRecord[];
}

/** A replay to two webhooks sends four messages within a moment. */
const rereadMs = 200;

/**
 * An event, kept up to date. It is read again when the stream mentions it: messages do not say what a receiver responded.
 */
export function useLiveEvent(id: string): Loaded<LiveEvent> & { showEarlier(): void } {
  const wanted = useRef({ id, attempts: attemptsAtOnce });
  if (wanted.current.id !== id) wanted.current = { id, attempts: attemptsAtOnce };
  const loaded = useLoaded<LiveEvent>(`event ${id}`, async (signal) => {
    // The attempts first: that way the records are never older than they are.
    const newest = await readNewestAttempts(id, wanted.current.attempts, signal);
    const records = await call<EventRecord[]>(`/v1/events/${encodeURIComponent(id)}`, { signal });
    return { records, ...newest };
  });

  const isOwn = (message: StreamMessage) => message.data().eventId === id;
  useAfter(["delivery.attempted", "delivery.finished"], rereadMs, isOwn, loaded.reload);
  useRefresh(["account.changed", "webhook.changed", "replay.progressed", "deliveries.ended"], 1_000, loaded.reload);
  return {
    ...loaded,
    showEarlier() {
      wanted.current.attempts = (loaded.data?.attempts.length ?? 0) + attemptsAtOnce;
      loaded.reload();
    },
  };
}
