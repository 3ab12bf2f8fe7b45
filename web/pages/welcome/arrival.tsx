import { call } from "../../api/client.ts";
import type { EventPage, EventRecord, Inbox, InboxDelivery } from "../../api/types.ts";
import { LinkButton } from "../../parts/button.tsx";
import { DeliveryState } from "../../parts/delivery-state.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Id } from "../../parts/id.tsx";
import { Shown, Skeleton } from "../../parts/states.tsx";
import { Time } from "../../parts/time.tsx";
import { useRefresh } from "../../stream/live.ts";
import { useLoaded } from "../../stream/load.ts";
import { describedOf } from "./described.ts";
import { Received } from "./received.tsx";

interface Latest {
  /** The records of the latest event, one per webhook. */
  readonly records: readonly EventRecord[];
  /** What the inbox received for it. */
  readonly received: InboxDelivery | null;
}

/** Follows the latest event live, from acceptance to receipt. */
export function Arrival({ inboxUrl }: { inboxUrl: string }) {
  const latest = useLoaded<Latest>("arrival", readLatest);
  useRefresh(["event.accepted", "delivery.attempted", "delivery.finished"], 250, latest.reload);
  return (
    <div aria-live="polite">
      <Shown of={latest} skeleton={<Skeleton width="60%" />}>
        {({ records, received }) => {
          const [first] = records;
          if (!first) {
            return (
              <p class="arrival-wait">
                <i aria-hidden="true" />
                Waiting for your first event. It will appear here.
              </p>
            );
          }
          return (
            <>
              <ol class="arrival" key={first.eventId}>
                <li class="is-new">
                  <span class="state delivered">
                    <Icon name="check" />
                    Accepted
                  </span>
                  <Id value={first.eventId} what="the event's id" />
                  <Time at={first.ingestionTimestamp} />
                </li>
                {records.map((record) => (
                  <li key={record.targetWebhook} class="is-new">
                    <DeliveryState state={record.state} />
                    <span class="breaks">{describedOf(record, inboxUrl)}</span>
                    {record.lastAttemptAt !== null && <Time at={record.lastAttemptAt} />}
                  </li>
                ))}
                {received && <Received delivery={received} />}
              </ol>
              <LinkButton href={`/events/${first.eventId}`}>See the event</LinkButton>
            </>
          );
        }}
      </Shown>
    </div>
  );
}

async function readLatest(signal: AbortSignal): Promise<Latest> {
  const { events } = await call<EventPage>("/v1/events", { query: { size: 1, payload: false }, signal });
  const [newest] = events;
  if (!newest) return { records: [], received: null };
  const [records, inbox] = await Promise.all([
    call<EventRecord[]>(`/v1/events/${newest.eventId}`, { signal }),
    call<Inbox>("/v1/inbox", { query: { size: 5 }, signal }),
  ]);
  return { records, received: inbox.deliveries.find(({ eventId }) => eventId === newest.eventId) ?? null };
}
