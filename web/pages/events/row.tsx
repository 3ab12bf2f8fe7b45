import { showControls } from "../../format/controls.ts";
import { shortenId, withoutQuery } from "../../format/shorten.ts";
import { DeliveryState } from "../../parts/delivery-state.tsx";
import { Skeleton } from "../../parts/states.tsx";
import { now, Time } from "../../parts/time.tsx";
import { holdsDeliveries } from "../../session/holding.ts";
import { outcomeOf } from "./outcome.ts";
import type { ListedRecord } from "./record.ts";

/** One record: an event and a webhook. */
export function EventRow({
  record,
  webhook,
  isPaused,
  isSelected = false,
  isNew = false,
  onSelect = () => {},
  onOpen = () => {},
}: {
  record: ListedRecord;
  /** The webhook as people call it. */
  webhook: string;
  /** Nothing is sent to the webhook until it is resumed. */
  isPaused: boolean;
  isSelected?: boolean;
  isNew?: boolean;
  onSelect?(): void;
  onOpen?(): void;
}) {
  const { eventId, targetWebhook, state, ingestionTimestamp, eventType } = record;
  return (
    <li class={isNew ? "is-new" : ""}>
      <a
        class={`row event-row ${isSelected ? "is-open" : ""}`}
        href={`/events/${eventId}`}
        onFocus={onSelect}
        onClick={(event) => isPlain(event) && onOpen()}
      >
        <span class="event-state is-new" key={state}>
          <DeliveryState state={state} isShort />
        </span>
        {eventType === null ? (
          <span class="soft event-type">
            {showControls(record.payloadStart ?? (record.payloadErased ? "payload erased" : "no type"))}
          </span>
        ) : (
          <span class="event-type" title={showControls(eventType)}>
            {showControls(eventType)}
          </span>
        )}
        <span class="mono soft event-id" title={eventId}>
          {shortenId(eventId)}
        </span>
        {targetWebhook === "" ? (
          <span class="soft event-webhook">no webhook</span>
        ) : (
          <span class="event-webhook" title={withoutQuery(targetWebhook)}>
            {webhook}
          </span>
        )}
        <span
          class={`event-outcome ${state === "FAILED" ? "bad" : "soft"}`}
          title={withoutQuery(record.errorReason ?? "")}
        >
          {outcomeOf(record, now.value, isPaused || holdsDeliveries())}
        </span>
        <span class="soft event-time">
          <Time at={ingestionTimestamp} />
        </span>
      </a>
    </li>
  );
}

/** Otherwise it opens in another tab. */
const isPlain = ({ ctrlKey, metaKey, shiftKey, altKey }: MouseEvent) => !(ctrlKey || metaKey || shiftKey || altKey);

export function EventSkeleton({ rows }: { rows: number }) {
  return (
    <ul class="rows event-skeleton">
      {Array.from({ length: rows }, (_, i) => (
        <li key={i} class="row event-row">
          <Skeleton width="14px" />
          <Skeleton width={`${40 + ((i * 37) % 40)}%`} />
          <Skeleton width="104px" />
          <Skeleton width={`${30 + ((i * 53) % 40)}%`} />
          <Skeleton width="60%" />
          <Skeleton width="64px" />
        </li>
      ))}
    </ul>
  );
}
