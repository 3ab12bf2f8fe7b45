import { useId } from "preact/hooks";
import type { Attempt, EventRecord, Webhook } from "../../api/types.ts";
import { showControls } from "../../format/controls.ts";
import { explainFailure } from "../../format/failure.ts";
import { withoutUrl } from "../../format/outcome.ts";
import { withoutQuery } from "../../format/shorten.ts";
import { exactTimeWithZone, relativeTime } from "../../format/time.ts";
import { LinkButton } from "../../parts/button.tsx";
import { Copy } from "../../parts/copy.tsx";
import { DeliveryState } from "../../parts/delivery-state.tsx";
import { now } from "../../parts/time.tsx";
import { holdsDeliveries } from "../../session/holding.ts";
import { curlOfEvent } from "../events/event-curl.ts";
import { nextAttemptOf } from "../events/next-attempt.ts";
import { AttemptRow, clockTime } from "./attempt.tsx";
import { forgottenInWords, type Run, runsOf, sizeOf } from "./runs.ts";

/** One webhook's share of an event: its state, why, and each attempt. */
export function RecordCard({
  record,
  attempts,
  webhooks,
  isOneOfSome,
}: {
  record: EventRecord;
  /** The attempts for its webhook, oldest first. */
  attempts: readonly Attempt[];
  /** The webhooks to which a replay would go; undefined until they are known. */
  webhooks: readonly Webhook[] | undefined;
  /** If so, each card offers the command that the page's head offers only for the first one. */
  isOneOfSome: boolean;
}) {
  const { targetWebhook, state, replayGroupId, attemptsForgotten = 0, heldBackBy: before } = record;
  const id = useId();
  const registered = webhooks?.map(({ url }) => url);
  const webhook = webhooks?.find(({ url }) => url === targetWebhook);
  const name = webhook?.name ?? "";
  const isGone = targetWebhook !== "" && registered?.includes(targetWebhook) === false;
  const isLabelShown = isLabelOf(attempts.at(-1), replayGroupId);
  const facts = [
    record.attempts === 0 && state === "PENDING" && <span key="untried">Not attempted yet</span>,
    attemptsForgotten > 0 && <span key="forgotten">{forgottenInWords(attemptsForgotten)}</span>,
    replayGroupId !== null && !isLabelShown && (
      <span key="group">
        Replay group{" "}
        <span class="mono">
          {replayGroupId.length > longestLabel ? `${replayGroupId.slice(0, longestLabel)}…` : replayGroupId}
        </span>
      </span>
    ),
    isGone && (
      <span key="gone" class="badge">
        No longer registered
      </span>
    ),
  ].filter((fact) => fact !== false);
  const title = (
    <>
      {name !== "" && (
        <strong class="webhook-name">
          <bdi>{showControls(name)}</bdi>{" "}
        </strong>
      )}
      {targetWebhook === "" ? nobody(state) : withoutQuery(targetWebhook)}
    </>
  );
  return (
    <section class="panel record" aria-labelledby={id}>
      <header>
        <h2 id={id} class={targetWebhook === "" ? "soft" : "mono"}>
          {webhook === undefined ? (
            title
          ) : (
            <a href={`/webhooks/${webhook.id}`} title="See this webhook">
              {title}
            </a>
          )}
        </h2>
        {isOneOfSome && !record.payloadErased && (
          <Copy text={() => curlOfEvent(record)} what="this delivery as curl" label="curl" />
        )}
        <span class="is-new" key={state}>
          <DeliveryState state={state} />
        </span>
      </header>
      {facts.length > 0 && <p class="record-facts soft">{facts}</p>}
      <Why record={record} registered={registered} />
      <Timeline runs={runsOf(attempts)} />
      {state === "PENDING" && !record.heldBack && (
        <Next at={record.nextAttemptAt} isPaused={webhook?.state === "paused"} />
      )}
      {record.heldBack && (
        <p class="record-next">
          Held back until {before ? <a href={`/events/${before}`}>the delivery before it</a> : "the delivery before it"}
          , with the same ordering key, has ended
        </p>
      )}
    </section>
  );
}

/** A label may be arbitrarily long. */
const longestLabel = 255;

/** Whether an attempt carries the label, of which it may hold only the beginning. */
function isLabelOf(attempt: Attempt | undefined, label: string | null): boolean {
  if (!attempt?.replayGroupIdIsCut) return attempt?.replayGroupId === label;
  return label?.startsWith(attempt.replayGroupId?.slice(0, -1) ?? "") ?? false;
}

/** What a replay has replaced with records of other webhooks; its attempts stay. */
export function ReplacedCard({ url, attempts }: { url: string; attempts: readonly Attempt[] }) {
  const id = useId();
  return (
    <section class="panel record" aria-labelledby={id}>
      <header>
        <h2 id={id} class="mono">
          {withoutQuery(url)}
        </h2>
        <span class="badge">No longer registered</span>
      </header>
      <p class="record-facts soft">A replay replaced this delivery with deliveries to the registered webhooks.</p>
      <Timeline runs={runsOf(attempts)} />
    </section>
  );
}

const nobody = (state: string) => (state === "SKIPPED" ? "No webhook takes this type of event" : "No webhook");

function Why({ record, registered }: { record: EventRecord; registered: readonly string[] | undefined }) {
  const { state, errorReason, targetWebhook, payloadErased } = record;
  if (errorReason === null) return null;
  const { meaning, remedy, isAboutWebhooks = false } = explainFailure(record, errorReason);
  const reason = withoutUrl(errorReason, targetWebhook);
  if (state !== "FAILED") {
    return (
      <div class="record-why soft">
        {/* Of an answer the meaning says as much. */}
        {record.errorCode !== "http_status" && <p>{reason}</p>}
        <p>{meaning} It is retried automatically.</p>
      </div>
    );
  }
  const goesElsewhere = registered !== undefined && registered.length > 0 && !registered.includes(targetWebhook);
  return (
    <div class="record-why notice bad">
      <p>
        <strong title={withoutQuery(errorReason)}>{reason}</strong>
      </p>
      <p>{meaning}</p>
      {!payloadErased && (
        <p>{goesElsewhere ? "A replay sends the event to the webhooks that are registered now." : remedy}</p>
      )}
      {isAboutWebhooks && !goesElsewhere && <LinkButton href="/webhooks">Go to webhooks</LinkButton>}
    </div>
  );
}

/** The latest run in full; earlier ones are collapsed. */
function Timeline({ runs }: { runs: readonly Run[] }) {
  return (
    <>
      {runs.map((run, i) => {
        const list = (
          <ol class="attempts">
            {run.attempts.map((attempt) => (
              <li key={attempt.number} class="is-new">
                <AttemptRow attempt={attempt} />
              </li>
            ))}
          </ol>
        );
        if (runs.length === 1 && run.replayGroupId === null) return list;
        return (
          <details key={run.attempts[0]?.number} class="run" open={i === runs.length - 1}>
            <summary>
              {run.replayGroupId === null ? "First delivery" : `Replay ${run.replayGroupId}`}
              <span class="soft"> · {sizeOf(run, i === 0)}</span>
            </summary>
            {list}
          </details>
        );
      })}
    </>
  );
}

/** @param isPaused nothing is sent to the webhook until it is resumed */
function Next({ at, isPaused }: { at: string | null; isPaused: boolean }) {
  const ms = at === null ? 0 : Date.parse(at);
  const next = nextAttemptOf(at, now.value, isPaused || holdsDeliveries());
  if (next === "paused") {
    const until = holdsDeliveries() ? "deliveries resume" : "the webhook is resumed";
    return <p class="record-next">Next attempt when {until}</p>;
  }
  if (next === "now") return <p class="record-next">Next attempt now</p>;
  const time = (words: string) => (
    <time dateTime={at ?? ""} title={exactTimeWithZone(ms)}>
      {words}
    </time>
  );
  const clock = clockTime(ms, now.value);
  return next === "turn" ? (
    <p class="record-next">
      Due since {time(clock)}. It waits for its turn: earlier deliveries are still unanswered, or a rate limit applies.
    </p>
  ) : (
    <p class="record-next">
      Next attempt {time(relativeTime(ms, now.value))} <span class="soft mono">{clock}</span>
    </p>
  );
}
