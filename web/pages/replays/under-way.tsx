import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { call } from "../../api/client.ts";
import type { Replay, ReplayPage, Webhook } from "../../api/types.ts";
import { Panel } from "../../parts/panel.tsx";
import { groupsOf, hasEnded, type ReplayGroup, withChanged } from "../../parts/replay-groups.ts";
import { useRefresh } from "../../stream/live.ts";
import { useLoaded } from "../../stream/load.ts";
import { mayReach } from "./narrowed.ts";
import { ReplayRows } from "./rows.tsx";

const followEveryMs = 500;
/** A page of events that is replayed one by one, twice. */
const latestSize = 100;

/** The latest replays, each of which can be followed and cancelled. */
export interface LatestReplays {
  rowOf(id: string): JSX.Element | null;
  /** Those that run or wait, except these. */
  othersThan(ids: readonly string[]): JSX.Element | null;
}

/**
 * @param started how many were started here
 * @param only the others are those that may deliver to this webhook
 */
export function useLatestReplays(started: number, webhooks: readonly Webhook[], only?: Webhook): LatestReplays {
  const list = useLoaded("under way", (signal) =>
    call<ReplayPage>("/v1/events/replays", { query: { size: latestSize }, signal }),
  );
  useRefresh(["replay.progressed"], followEveryMs, list.reload);
  useEffect(list.reload, [started]);
  const replays = list.data?.replays ?? [];

  const rowsOf = (groups: readonly ReplayGroup[]) => (
    <ReplayRows
      groups={groups}
      webhooks={webhooks}
      onChanged={(changed) => list.data && list.put({ ...list.data, replays: withChanged(replays, changed) })}
    />
  );

  return {
    rowOf(id) {
      const replay = replays.find((one) => one.id === id);
      return replay ? <ul>{rowsOf([[replay]])}</ul> : null;
    },
    othersThan(ids) {
      const reaching = replays.filter((replay) => only === undefined || mayReach(replay, only));
      const isOther = (replay: Replay) => !hasEnded(replay) && !ids.includes(replay.id);
      // What has ended of a group is part of its progress.
      const others = groupsOf(reaching).filter((group) => group.some(isOther));
      return others.length === 0 ? null : (
        <Panel title="Replays" actions={<a href="/replays">See all</a>} isFlush>
          <ul class="rows">{rowsOf(others)}</ul>
        </Panel>
      );
    },
  };
}
