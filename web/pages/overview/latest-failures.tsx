import { useRef, useState } from "preact/hooks";
import { call } from "../../api/client.ts";
import type { EventPage, EventRecord } from "../../api/types.ts";
import { shortenId, withoutQuery } from "../../format/shorten.ts";
import { Button } from "../../parts/button.tsx";
import { DeliveryState } from "../../parts/delivery-state.tsx";
import { Panel } from "../../parts/panel.tsx";
import { Empty, Shown, SkeletonRows } from "../../parts/states.tsx";
import { Time } from "../../parts/time.tsx";
import { useRefresh } from "../../stream/live.ts";
import { useLoaded } from "../../stream/load.ts";
import { replayEvent } from "../events/replay-event.ts";
import { useHold } from "./hold.ts";

const rows = 6;

/** The newest records that failed, whenever that was, each with the one thing to do about it. */
export function LatestFailures() {
  const failures = useLoaded("latest failures", (signal) =>
    call<EventPage>("/v1/events/state/FAILED", { query: { size: rows, payload: false }, signal }),
  );
  // An event that finds no webhook has failed as it is accepted.
  useRefresh(["event.accepted", "delivery.finished"], 2000, failures.reload);
  return (
    <Panel
      title="Latest failures"
      actions={
        <a href="/events?state=failed">
          See all <span aria-hidden="true">→</span>
        </a>
      }
      isFlush
    >
      <Shown
        of={failures}
        skeleton={<SkeletonRows rows={3} />}
        isEmpty={({ events }) => events.length === 0}
        empty={
          <Empty sentence="No failed deliveries.">
            <a href="/events">See all events</a>
          </Empty>
        }
      >
        {({ events }) => <Rows events={events} />}
      </Shown>
    </Panel>
  );
}

const keyOf = ({ eventId, targetWebhook }: EventRecord) => `${eventId} ${targetWebhook}`;

function Rows({ events }: { events: readonly EventRecord[] }) {
  const { shown, holding } = useHold(events);
  /** Each with the attempt that had failed: one that fails once more can be replayed once more. */
  const [replayed, setReplayed] = useState<readonly string[]>([]);
  const runOf = (record: EventRecord) => `${record.eventId} ${record.lastAttemptAt}`;
  /** Rows that were there before do not fade in. */
  const before = useRef(new Set(shown.map(keyOf)));
  const isNew = (record: EventRecord) => !before.current.has(keyOf(record));

  async function replay(record: EventRecord): Promise<void> {
    await replayEvent(record.eventId);
    setReplayed((earlier) => [runOf(record), ...earlier].slice(0, rows));
  }

  return (
    <ul class="rows" {...holding}>
      {shown.map((record) => (
        <li key={keyOf(record)} class={`row failure ${isNew(record) ? "is-new" : ""}`}>
          <DeliveryState state={record.state} isShort />
          <a class="mono spread" href={`/events/${record.eventId}`} title={record.eventId}>
            {shortenId(record.eventId)}
          </a>
          <span class="why" title={withoutQuery(record.errorReason ?? "")}>
            {withoutQuery(record.errorReason ?? "")}
          </span>
          <span class="soft">
            <Time at={record.lastAttemptAt ?? record.ingestionTimestamp} />
          </span>
          <Button
            onClick={() => replay(record)}
            disabled={replayed.includes(runOf(record))}
            aria-label={`Replay ${shortenId(record.eventId)}`}
          >
            {replayed.includes(runOf(record)) ? "Started" : "Replay"}
          </Button>
        </li>
      ))}
    </ul>
  );
}
