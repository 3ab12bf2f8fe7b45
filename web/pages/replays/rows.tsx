import { useState } from "preact/hooks";
import type { Replay, Webhook } from "../../api/types.ts";
import { count } from "../../format/number.ts";
import { Button } from "../../parts/button.tsx";
import { aheadOf, hasEnded, type ReplayGroup, sumOf } from "../../parts/replay-groups.ts";
import { cancelReplays, ItsEvents, ReplayRow } from "../../parts/replay-row.tsx";
import { narrowedTo } from "./narrowed.ts";

interface Around {
  readonly webhooks: readonly Webhook[] | undefined;
  /** Those among which is what a waiting one waits for. */
  readonly replays: readonly Replay[];
  /** Marks the one that the page was opened for. */
  readonly markedId?: string | undefined;
  onChanged(changed: readonly Replay[]): void;
}

/** A row for each replay, and one for those of one event each that belong together. */
export const ReplayRows = ({
  groups,
  isPart = () => false,
  ...around
}: Around & { groups: readonly ReplayGroup[]; isPart?(group: ReplayGroup): boolean }) => (
  <>
    {groups.map((group) => {
      const [replay, ...others] = group;
      // The oldest, as a group that is being started grows at its other end.
      const key = group.at(-1)?.id;
      return others.length === 0 ? (
        <OneRow key={key} replay={replay} {...around} />
      ) : (
        <GroupRow key={key} group={group} isPart={isPart(group)} {...around} />
      );
    })}
  </>
);

const OneRow = ({ replay, replays, webhooks, markedId, onChanged }: Around & { replay: Replay }) => (
  <ReplayRow
    replay={replay}
    narrowedTo={narrowedTo(replay, webhooks)}
    ahead={aheadOf(replay, replays)}
    isMarked={replay.id === markedId}
    onCancel={async () => onChanged(await cancelReplays([replay.id]))}
  >
    {replay.queued > 0 && (
      <div class="buttons">
        <ItsEvents of={replay} />
      </div>
    )}
  </ReplayRow>
);

function GroupRow({ group, isPart, ...around }: Around & { group: ReplayGroup; isPart: boolean }) {
  const [isOpen, setOpen] = useState(false);
  const open = group.filter((replay) => !hasEnded(replay));
  return (
    <ReplayRow
      replay={sumOf(group, "One by one")}
      events={null}
      isMarked={group.some(({ id }) => id === around.markedId)}
      onCancel={async () => around.onChanged(await cancelReplays(open.map(({ id }) => id)))}
    >
      {isPart && (
        <p class="soft small">
          Part of a larger group: only {count(group.length)} of its replays are counted here, and can be cancelled here.
        </p>
      )}
      <div class="buttons">
        <Button aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? "Hide each" : `Show each of ${count(group.length)}`}
        </Button>
      </div>
      {isOpen && (
        <ul class="rows">
          {group.map((replay) => (
            <OneRow key={replay.id} replay={replay} {...around} />
          ))}
        </ul>
      )}
    </ReplayRow>
  );
}
