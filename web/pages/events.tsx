import { useEffect, useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { call } from "../api/client.ts";
import type { EventRecord, Webhook } from "../api/types.ts";
import { readWebhooks } from "../api/webhooks.ts";
import { showControls } from "../format/controls.ts";
import { exactTimeWithZone } from "../format/time.ts";
import { Button, LinkButton } from "../parts/button.tsx";
import { DisabledWebhook } from "../parts/disabled-webhook.tsx";
import { Icon } from "../parts/icon.tsx";
import { useShortcuts } from "../parts/keyboard.tsx";
import { PageHead } from "../parts/page.tsx";
import { ReplayQuestion } from "../parts/replay-question.tsx";
import { say } from "../parts/said.tsx";
import { Empty, Shown } from "../parts/states.tsx";
import { unlessUnderWay } from "../parts/under-way.ts";
import { useRefresh } from "../stream/live.ts";
import { useLoaded } from "../stream/load.ts";
import { sayDisabled, tryAndSay } from "./events/act.ts";
import { webhookInWords } from "./events/chips.ts";
import { copyCurl } from "./events/event-curl.ts";
import { useEventList } from "./events/event-list.ts";
import "./events.css";
import { choose, droppedOf, type Filter, isChoosing, readFilter, urlOf } from "./events/filter.ts";
import { Filters } from "./events/filters.tsx";
import { findList, openFrom, useHistoryEntry, useReturn } from "./events/left-lists.ts";
import { useNews } from "./events/news.ts";
import { Pager, SearchFurther } from "./events/pager.tsx";
import { isCalled, isEnabled } from "./events/receivers.ts";
import { type Listed, type ListedRecord, pairOf } from "./events/record.ts";
import { replayableUrl, withRemoved } from "./events/removed-webhook.ts";
import { replayEvent } from "./events/replay-event.ts";
import { ReplayListed } from "./events/replay-listed.tsx";
import { againInWords, disabledFor } from "./events/replay-these.ts";
import { Replaying } from "./events/replaying.tsx";
import { EventRow, EventSkeleton } from "./events/row.tsx";
import { useRowKeys } from "./events/row-keys.ts";
import { useSeen } from "./events/seen.ts";

const webhooksEveryMs = 1_000;

interface Asked {
  readonly eventId: string;
  /** Undefined: all that are registered. */
  readonly webhook: string | undefined;
  readonly again: string;
}

/** The account's history: one row per event and webhook, newest first. */
export function EventsPage() {
  const { query, url, route } = useLocation();
  const filter = readFilter(query);
  const dropped = droppedOf(query);
  const entry = useHistoryEntry(url);
  const list = useEventList(filter, entry);
  const webhooks = useLoaded("webhooks", readWebhooks);
  useRefresh(["account.changed", "webhook.changed"], webhooksEveryMs, webhooks.reload);
  const seen = useSeen(list.records);
  const news = useNews(filter, list, urlOfWebhook(filter.webhook, webhooks.data));
  /** What was newest before somebody asked for more. */
  const [seenId, setSeenId] = useState<string | null>(null);
  /** A delivery that was acknowledged, while it is asked whether to send it again. */
  const [asked, setAsked] = useState<Asked | null>(null);
  const [isTyping, setTyping] = useState(false);

  const rows = useRowKeys(list.records, findList(entry)?.selected ?? null);
  const { data } = list.loaded;
  const listed = data && { ...data, records: list.records };
  useReturn(entry, listed && { listed, selected: rows.selected });

  useShortcuts([
    {
      keys: "r",
      does: "Replay the selected delivery",
      changes: true,
      run: () => void act(rows.selectedRecord, (record) => unlessUnderWay(pairOf(record), () => askOrReplay(record))),
    },
    {
      keys: "c",
      does: "Copy the selected event as curl",
      run: () => void act(rows.selectedRecord, (record) => copyCurl(record, nameOf(record))),
    },
  ]);

  const nameOf = ({ targetWebhook }: ListedRecord) => webhookInWords(targetWebhook, webhooks.data);

  /** Replays the row's delivery; if its webhook is gone, it goes to those that are registered. */
  async function askOrReplay(record: ListedRecord): Promise<void> {
    const registered = webhooks.data ?? (await readWebhooks());
    const target = registered.find(({ url }) => url === record.targetWebhook);
    if (target && !isEnabled(target)) return sayDisabled(target);
    const isRegistered = target !== undefined;
    const { eventId } = record;
    const again = againInWords(
      isRegistered ? [record] : await call<EventRecord[]>(`/v1/events/${eventId}`),
      registered,
    );
    const webhook = isRegistered ? record.targetWebhook : undefined;
    if (again === "") list.replace(await replayEvent(eventId, webhook));
    else setAsked({ eventId, webhook, again });
  }

  function loadNewest(): void {
    setSeenId(data?.newestId ?? null);
    news.forget();
    list.loadNewest();
    scrollTo(0, 0);
  }

  const isWaitingForFirst = news.text !== null && data?.records.length === 0;
  // Where there are no rows, none can jump.
  useEffect(() => {
    if (isWaitingForFirst) loadNewest();
  }, [isWaitingForFirst]);

  const disabled = listed && webhooks.data && disabledFor(filter, listed, webhooks.data);
  const replayable = replayableUrl(filter, list.records, webhooks.data);
  const apply = (choice: Partial<Filter>) => route(urlOf(choose(filter, choice)));

  return (
    <>
      <div class="events-head">
        <PageHead title="Events">
          <div class="events-news">
            {news.text !== null && (
              <Button kind="primary" onClick={loadNewest}>
                <Icon name="up" />
                {news.text}
              </Button>
            )}
          </div>
          {listed && dropped.length === 0 && (
            <ReplayListed filter={filter} listed={listed} webhooks={webhooks.data} isTyping={isTyping} />
          )}
        </PageHead>
        <Filters
          filter={filter}
          webhooks={withRemoved(webhooks.data, filter.webhook, list.records)}
          seen={seen}
          onChoose={apply}
          onTyping={setTyping}
        />
      </div>
      <Replaying listUrl={urlOf(filter)} onOver={list.loadNewest} />
      {dropped.length > 0 && (
        <p class="notice warn">
          This part of the address is not applied: <bdi>{showControls(dropped.join(", "))}</bdi>.{" "}
          <a href={urlOf(filter)}>Remove it</a> to replay what is listed.
        </p>
      )}
      {disabled && <DisabledWebhook webhook={disabled} onEnabled={webhooks.reload} />}
      {replayable !== null && (
        <p class="notice">
          This webhook was removed, so nothing can be replayed to it. <a href={replayable}>See all that failed</a> to
          replay it to the registered webhooks.
        </p>
      )}
      <section class="panel" aria-label="Events">
        <Shown
          of={list.loaded}
          skeleton={<EventSkeleton rows={12} />}
          isEmpty={({ records }) => records.length === 0}
          empty={<NoEvents filter={filter} listed={data} />}
        >
          {(listed) => (
            <>
              <ul class="rows" ref={rows.element}>
                {list.records.map((record) => (
                  <EventRow
                    key={pairOf(record)}
                    record={record}
                    webhook={nameOf(record)}
                    isPaused={webhooks.data?.find(({ url }) => url === record.targetWebhook)?.state === "paused"}
                    isSelected={pairOf(record) === rows.selected}
                    isNew={seenId !== null && record.eventId > seenId}
                    onSelect={() => rows.select(pairOf(record))}
                    onOpen={() => openFrom(url, record)}
                  />
                ))}
              </ul>
              <Pager filter={filter} listed={listed} />
            </>
          )}
        </Shown>
      </section>
      {asked && (
        <ReplayQuestion
          title="Replay this delivery?"
          facts={[["Event", asked.eventId]]}
          press="Replay"
          onStart={async () => {
            list.replace(await replayEvent(asked.eventId, asked.webhook));
            setAsked(null);
          }}
          onClose={() => setAsked(null)}
        >
          {asked.again}
        </ReplayQuestion>
      )}
    </>
  );
}

/** Null: any webhook; undefined: it is unknown, or no longer registered. */
function urlOfWebhook(chosen: string, webhooks: readonly Webhook[] | undefined): string | null | undefined {
  return chosen === "" ? null : webhooks?.find(isCalled(chosen))?.url;
}

async function act(record: ListedRecord | undefined, run: (record: ListedRecord) => Promise<void>): Promise<void> {
  if (record === undefined) say("Select an event first with j or k.");
  else await tryAndSay(() => run(record));
}

function NoEvents({ filter, listed }: { filter: Filter; listed: Listed | undefined }) {
  const { route } = useLocation();
  const { total, searchedTo } = listed ?? { total: 0, searchedTo: null };
  if (searchedTo !== null)
    return (
      <Empty sentence={`Nothing found as far back as ${exactTimeWithZone(Date.parse(searchedTo))}.`}>
        <SearchFurther filter={filter} searchedTo={searchedTo} />
      </Empty>
    );
  if (filter.page > 1)
    return (
      <Empty sentence={`There is no page ${filter.page}.`}>
        <LinkButton href={urlOf({ ...filter, page: 1, until: "" })}>Go to the first page</LinkButton>
      </Empty>
    );
  if (isChoosing(filter) || total > 0)
    return (
      <Empty sentence="No events match the filters.">
        <Button onClick={() => route("/events")}>Clear filters</Button>
      </Empty>
    );
  return (
    <Empty sentence="No events yet. Every event you send is kept here, with each attempt to deliver it.">
      <LinkButton kind="primary" href="/welcome">
        Send your first event
      </LinkButton>
    </Empty>
  );
}
