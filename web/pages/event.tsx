import { useMemo, useState } from "preact/hooks";
import { useRoute } from "preact-iso/router";
import { call } from "../api/client.ts";
import type { Delivery, Webhook } from "../api/types.ts";
import { readWebhooks } from "../api/webhooks.ts";
import { showControls } from "../format/controls.ts";
import { bytes, count } from "../format/number.ts";
import { exactTimeWithZone } from "../format/time.ts";
import { Button, LinkButton } from "../parts/button.tsx";
import { Copy } from "../parts/copy.tsx";
import { Icon } from "../parts/icon.tsx";
import { useShortcuts } from "../parts/keyboard.tsx";
import { PageHead } from "../parts/page.tsx";
import { Empty, Shown, Skeleton, SkeletonRows } from "../parts/states.tsx";
import { Time } from "../parts/time.tsx";
import { unlessUnderWay } from "../parts/under-way.ts";
import { type Loaded, useLoaded } from "../stream/load.ts";
import { AskAgain } from "./event/ask-again.tsx";
import { ErasedPayload, erasedId } from "./event/erased-payload.tsx";
import { type LiveEvent, useLiveEvent } from "./event/live-event.ts";
import { Payload } from "./event/payload.tsx";
import { payloadOf } from "./event/payload-of.ts";
import { RecordCard, ReplacedCard } from "./event/record-card.tsx";
import "./event.css";
import { sayDisabled, tryAndSay } from "./events/act.ts";
import { webhookInWords } from "./events/chips.ts";
import { copyCurl, curlOfEvent } from "./events/event-curl.ts";
import { followedRow, useWayBack } from "./events/left-lists.ts";
import { isEnabled, receiversIn, receiversOf } from "./events/receivers.ts";
import { attemptsInWords, meantOf } from "./events/record.ts";
import { replayEvent } from "./events/replay-event.ts";

/** One event: what was submitted, and what became of it at each webhook. */
export function EventPage() {
  const { id = "" } = useRoute().params;
  const event = useLiveEvent(id);
  const back = useWayBack();
  const records = event.data?.records ?? [];
  const [first] = records;
  const meant = meantOf(records, followedRow());
  const isErased = first?.payloadErased === true;

  const webhooks = useLoaded("webhooks", readWebhooks);
  const called = webhookInWords(meant?.targetWebhook ?? "", webhooks.data);
  /** Whom a replay would deliver to, while the question stands. */
  const [asked, setAsked] = useState<readonly Webhook[] | null>(null);

  async function replay(url?: string): Promise<void> {
    await replayEvent(id, url);
    event.reload();
  }

  /** Webhooks that have acknowledged an event get it a second time only if the user says so. */
  const askOrReplay = () =>
    unlessUnderWay(id, async () => {
      // The list may have changed since the page was opened.
      const registered = await readWebhooks();
      const receivers = receiversOf(registered, first?.eventType ?? null);
      const disabled = registered.find((one) => !isEnabled(one));
      if (receivers.length === 0 && disabled) return sayDisabled(disabled);
      if (receiversIn("DELIVERED", records, receivers).length > 0) setAsked(receivers);
      else await replay();
    });

  useShortcuts([
    { keys: "Escape", does: "Back to the events", run: back.go },
    {
      keys: "r",
      does: "Replay this event",
      changes: true,
      run: () => void (first && !isErased && tryAndSay(askOrReplay)),
    },
    {
      keys: "c",
      does: "Copy this event as curl",
      run: () => void (meant && !isErased && tryAndSay(() => copyCurl(meant, called))),
    },
  ]);

  return (
    <div class="event-page">
      <p class="event-back">
        <a href={back.href} onClick={back.onClick}>
          <Icon name="back" />
          Events
        </a>
      </p>
      <PageHead title={id}>
        {first && (
          <div class="end">
            <Copy text={id} what="id" label="Copy id" kind="plain" />
            {meant && !isErased && (
              <Copy
                text={() => curlOfEvent(meant)}
                what={`as curl${records.length > 1 ? ` for ${called}` : ""}`}
                label="Copy as curl"
                kind="plain"
              />
            )}
            <Button
              changes
              kind="primary"
              onClick={askOrReplay}
              disabled={isErased}
              aria-describedby={isErased ? erasedId : undefined}
            >
              Replay
            </Button>
          </div>
        )}
      </PageHead>
      {event.error?.status === 404 && event.data === undefined ? (
        <Unknown id={id} />
      ) : (
        <Found id={id} event={event} webhooks={webhooks.data} showEarlier={event.showEarlier} />
      )}
      {asked && event.data && (
        <AskAgain records={event.data.records} receivers={asked} onReplay={replay} onClose={() => setAsked(null)} />
      )}
    </div>
  );
}

function Unknown({ id }: { id: string }) {
  return (
    <section class="panel" aria-label="Not found">
      <Empty
        sentence={
          <>
            This account has no event with the id <span class="mono">{id}</span>. It may belong to another account, or
            the id may be incomplete.
          </>
        }
      >
        <LinkButton href="/events">See all events</LinkButton>
      </Empty>
    </section>
  );
}

interface Around {
  readonly webhooks: readonly Webhook[] | undefined;
  showEarlier(): void;
}

function Found({ id, event, ...around }: Around & { id: string; event: Loaded<LiveEvent> }) {
  return (
    <Shown of={event} skeleton={<EventSkeleton />}>
      {(found) => <Parts id={id} {...found} {...around} />}
    </Shown>
  );
}

function Parts({ id, records, attempts, earlier, webhooks, showEarlier }: LiveEvent & Around & { id: string }) {
  const isErased = records[0]?.payloadErased === true;
  const delivery = useLoaded(`delivery ${id} ${isErased}`, async (signal) =>
    isErased ? null : call<Delivery>(`/v1/events/${id}/delivery`, { signal }),
  );
  const text = useMemo(() => delivery.data?.body && payloadOf(delivery.data.body), [delivery.data]);
  const { ingestionTimestamp: acceptedAt, eventType = null } = records[0] ?? {};
  return (
    <>
      {acceptedAt !== undefined && (
        <p class="soft event-accepted">
          {eventType !== null && (
            <>
              <strong class="breaks">{showControls(eventType)}</strong> ·{" "}
            </>
          )}
          <span class="nowrap">Accepted {exactTimeWithZone(Date.parse(acceptedAt))}</span> · <Time at={acceptedAt} />
          {text !== undefined && (
            <>
              {" "}
              · <span class="nowrap">{bytes(new Blob([text]).size)}</span>
            </>
          )}
        </p>
      )}
      <div class="event-parts">
        <div class="stack">
          {earlier > 0 && (
            <p class="event-earlier soft">
              Showing the newest {count(attempts.length)} of {attemptsInWords(attempts.length + earlier)}.
              <Button onClick={showEarlier}>Show earlier attempts</Button>
            </p>
          )}
          <Records records={records} attempts={attempts} webhooks={webhooks} />
        </div>
        {isErased ? (
          <ErasedPayload acceptedAt={acceptedAt ?? ""} />
        ) : (
          <Shown of={delivery} skeleton={<PayloadSkeleton />}>
            {() => text !== undefined && <Payload text={text} />}
          </Shown>
        )}
      </div>
    </>
  );
}

/** One card per webhook, plus one for the attempts of records that a replay has replaced, whose log stays. */
function Records({ records, attempts, webhooks }: Pick<LiveEvent, "records" | "attempts"> & Pick<Around, "webhooks">) {
  const shown = new Set(records.map(({ targetWebhook }) => targetWebhook));
  const replaced = [...new Set(attempts.map(({ targetWebhook }) => targetWebhook))].filter((url) => !shown.has(url));
  const triesOf = (url: string) => attempts.filter(({ targetWebhook }) => targetWebhook === url);
  return (
    <>
      {records.map((record) => (
        <RecordCard
          key={record.targetWebhook}
          record={record}
          attempts={triesOf(record.targetWebhook)}
          webhooks={webhooks}
          isOneOfSome={records.length > 1}
        />
      ))}
      {replaced.map((url) => (
        <ReplacedCard key={url} url={url} attempts={triesOf(url)} />
      ))}
    </>
  );
}

function EventSkeleton() {
  return (
    <div class="event-parts event-skeleton">
      <div class="panel">
        <header>
          <Skeleton width="60%" />
        </header>
        <SkeletonRows rows={3} />
      </div>
      <PayloadSkeleton />
    </div>
  );
}

function PayloadSkeleton() {
  return (
    <div class="panel">
      <header>
        <Skeleton width="72px" />
      </header>
      <div class="body stack">
        <Skeleton width="30%" />
        <Skeleton width="70%" />
        <Skeleton width="55%" />
        <Skeleton width="40%" />
      </div>
    </div>
  );
}
