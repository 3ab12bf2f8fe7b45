import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { call } from "../../api/client.ts";
import type { ReplayPage, Webhook } from "../../api/types.ts";
import { Panel } from "../../parts/panel.tsx";
import { type ReplayGroup, withChanged } from "../../parts/replay-groups.ts";
import { useRefresh } from "../../stream/live.ts";
import { type Loaded, useLoaded } from "../../stream/load.ts";
import { isEnough, latestSize, sizeToFollow, underWay } from "./latest.ts";
import { ReplayRows } from "./rows.tsx";

const followEveryMs = 500;

/** The latest replays, each of which can be followed and cancelled. */
export interface LatestReplays {
  rowOf(id: string): JSX.Element | null;
  /** Those that run or wait, except what was started here. */
  readonly others: JSX.Element | null;
}

/**
 * @param startedHere ids of replays
 * @param only the others are those that may deliver to this webhook
 */
export function useLatestReplays(
  startedHere: readonly string[],
  webhooks: readonly Webhook[],
  only?: Webhook,
): LatestReplays {
  const list: Loaded<ReplayPage> = useLoaded("under way", async (signal) => {
    const read = (size: number) => call<ReplayPage>("/v1/events/replays", { query: { size }, signal });
    const latest = await read(sizeToFollow(list.data?.replays ?? null, followed));
    return isEnough(latest, followed) ? latest : read(latestSize);
  });
  useRefresh(["replay.progressed"], followEveryMs, list.reload);
  useEffect(list.reload, [startedHere.length]);
  const replays = list.data?.replays ?? [];
  const others = underWay(replays, startedHere, only);
  const shown = [...startedHere, ...others.flatMap((group) => group.map(({ id }) => id))];
  const followed = new Set(shown.filter((id) => replays.some((one) => one.id === id)));

  const rowsOf = (groups: readonly ReplayGroup[]) => (
    <ReplayRows
      groups={groups}
      webhooks={webhooks}
      replays={replays}
      onChanged={(changed) => list.data && list.put({ ...list.data, replays: withChanged(replays, changed) })}
    />
  );

  return {
    rowOf(id) {
      const replay = replays.find((one) => one.id === id);
      return replay ? <ul>{rowsOf([[replay]])}</ul> : null;
    },
    others:
      others.length === 0 ? null : (
        <Panel title="Replays" actions={<a href="/replays">See all</a>} isFlush>
          <ul class="rows">{rowsOf(others)}</ul>
        </Panel>
      ),
  };
}
