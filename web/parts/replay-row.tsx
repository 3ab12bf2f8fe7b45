import "./replay-row.css";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "../api/client.ts";
import type { Replay } from "../api/types.ts";
import { count } from "../format/number.ts";
import { AttemptButton, Refusal, useAttempt } from "./attempt.tsx";
import { Button, LinkButton } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { Icon } from "./icon.tsx";
import { hasEnded, leftOf, openOf } from "./replay-groups.ts";
import { lookOf } from "./replay-look.ts";
import { say } from "./said.tsx";
import { Shares } from "./shares.tsx";
import { Skeleton } from "./states.tsx";
import { Time } from "./time.tsx";

const kindWords: Readonly<Record<string, string>> = {
  failed: "Failed events",
  timeline: "A time range",
  single: "One event",
  all: "All events",
};

/** A narrowed selection is not "all". */
const narrowedKind = (kind: string): string => (kind === "all" ? "Events" : (kindWords[kind] ?? kind));

export function ReplayRow({
  replay,
  events = replay.selected,
  narrowedTo = "",
  ahead,
  isMarked = false,
  onCancel,
  children,
}: {
  replay: Replay;
  /** How many it selected; null: that is not known. */
  events?: number | null;
  /** The part of its kind that it covers, in words; "": all of it. */
  narrowedTo?: string;
  /** The one that it waits for. */
  ahead?: Replay | undefined;
  /** Marks the one that the page was opened for. */
  isMarked?: boolean;
  onCancel(): Promise<void>;
  /** What is shown at its end. */
  children?: ComponentChildren;
}) {
  const [isAsking, setAsking] = useState(false);
  const {
    kind,
    replayGroupId,
    selected,
    delivered,
    failed,
    superseded,
    skipped,
    returned = 0,
    payloadsErased = 0,
  } = replay;
  const queued = replay.queued - returned;
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isMarked) row.current?.scrollIntoView({ block: "center" });
  }, [isMarked]);
  const look = lookOf(replay);
  const open = openOf(replay);
  const left = ahead ? leftOf(ahead) : 0;
  return (
    <li ref={row} class={`replay ${isMarked ? "is-marked" : ""}`}>
      <div class="head">
        <span class={`state ${look.tone}`}>
          <Icon name={look.icon} />
          {look.word}
        </span>
        <strong class="label" title={replayGroupId}>
          {replayGroupId}
        </strong>
        <span class="soft small">
          {narrowedTo === "" ? (kindWords[kind] ?? kind) : `${narrowedKind(kind)}: ${narrowedTo}`} ·{" "}
          <Time at={replay.createdAt} />
        </span>
        {!hasEnded(replay) && (
          <Button changes class="end" onClick={() => setAsking(true)} aria-label={`Cancel ${replayGroupId}`}>
            Cancel
          </Button>
        )}
      </div>
      <Shares
        of="deliveries of this replay"
        parts={[
          { tone: "delivered", n: delivered, word: "delivered" },
          { tone: "failed", n: failed, word: "failed" },
          { tone: "neither", n: superseded, word: "superseded" },
          { tone: "neither", n: skipped, word: "skipped" },
          // For a cancelled replay these are in flight, or about to return.
          { tone: "waiting", n: open, word: "waiting" },
        ]}
        whole={hasEnded(replay) ? queued + skipped : Math.max(queued + skipped, selected)}
      />
      <p class="small numbers">
        <span>
          {[
            events !== null && `${count(events)} ${events === 1 ? "event" : "events"} selected`,
            queued > 0 && `${count(queued)} ${queued === 1 ? "delivery" : "deliveries"} queued`,
          ]
            .filter(Boolean)
            .join(", ")}
        </span>
        {queued > 0 && <span class="state delivered">{count(delivered)} delivered</span>}
        {failed > 0 && <span class="state failed">{count(failed)} failed</span>}
        {open > 0 && <span class="state waiting">{count(open)} waiting</span>}
        {superseded > 0 && (
          <span class="soft" title="A later replay replaced them before they finished.">
            {count(superseded)} superseded
          </span>
        )}
        {skipped > 0 && (
          <span
            class="soft"
            title="Their webhook was removed, is disabled or does not take this type of event, or the payload was erased."
          >
            {count(skipped)} skipped
          </span>
        )}
        {payloadsErased > 0 && <span class="soft">{count(payloadsErased)} payloads erased</span>}
        {returned > 0 && (
          <span
            class="soft"
            title="They were waiting when the replay was cancelled, and returned to their previous state."
          >
            {count(returned)} returned
          </span>
        )}
      </p>
      {ahead && (
        <p class="soft small">
          Waits for <a href={`/replays?id=${ahead.id}`}>{ahead.replayGroupId}</a>
          {left > 0 && `, which has ${count(left)} ${left === 1 ? "delivery" : "deliveries"} left`}.
        </p>
      )}
      {children}
      {isAsking && <CancelDialog replay={replay} open={open} onClose={() => setAsking(false)} onCancel={onCancel} />}
    </li>
  );
}

/** Links to the events that it started, whatever became of them. */
export const ItsEvents = ({ of: { id, failed } }: { of: Pick<Replay, "id" | "failed"> }) => (
  <>
    <LinkButton href={`/events?replay=${id}`}>See its events</LinkButton>
    {failed > 0 && <LinkButton href={`/events?state=failed&replay=${id}`}>See what failed</LinkButton>}
  </>
);

/** Cancels replays that belong together, or one. @returns their states afterwards, in the same order */
export async function cancelReplays(ids: readonly string[]): Promise<Replay[]> {
  const now: Replay[] = [];
  for (const id of ids) now.push(await call<Replay>(`/v1/events/replays/${id}`, { method: "DELETE" }));
  const cancelled = now.find(({ status }) => status === "cancelled");
  if (cancelled) say(`Replay ${cancelled.replayGroupId} cancelled.`);
  else say("It had ended, so there was nothing left to cancel.");
  return now;
}

function CancelDialog({
  replay,
  open,
  onClose,
  onCancel,
}: {
  replay: Replay;
  open: number;
  onClose(): void;
  onCancel(): Promise<void>;
}) {
  const attempt = useAttempt(async () => {
    await onCancel();
    onClose();
  });
  return (
    <Dialog title={`Cancel ${replay.replayGroupId}?`} onClose={onClose}>
      <p>
        Nothing more will be sent. Waiting deliveries return to their previous state
        {open > 0 ? `: ${count(open)} at the moment.` : "."}
      </p>
      <Refusal of={attempt} />
      <div class="buttons">
        <Button onClick={onClose}>Keep it running</Button>
        <AttemptButton of={attempt} kind="danger">
          Cancel the replay
        </AttemptButton>
      </div>
    </Dialog>
  );
}

export const ReplaySkeleton = ({ rows }: { rows: number }) => (
  <ul class="rows">
    {Array.from({ length: rows }, (_, i) => (
      <li key={i} class="replay">
        <Skeleton width="36%" height="16px" />
        <Skeleton width="100%" height="8px" />
        <Skeleton width="48%" />
      </li>
    ))}
  </ul>
);
