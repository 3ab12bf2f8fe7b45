import { useEffect } from "preact/hooks";
import { call } from "../../api/client.ts";
import type { Replay, ReplayPage, Webhook } from "../../api/types.ts";
import { Panel } from "../../parts/panel.tsx";
import { hasEnded, ItsEvents, ReplayRow } from "../../parts/replay-row.tsx";
import { useRefresh } from "../../stream/live.ts";
import { useLoaded } from "../../stream/load.ts";
import { narrowedTo } from "./narrowed.ts";

const followEveryMs = 500;

/** How replays go that run or wait, and those that were started here; nothing while there are none. */
export function ReplaysUnderWay({ started, webhooks }: { started: readonly string[]; webhooks: readonly Webhook[] }) {
  const list = useLoaded("under way", (signal) =>
    call<ReplayPage>("/v1/events/replays", { query: { size: 20 }, signal }),
  );
  useRefresh(["replay.progressed"], followEveryMs, list.reload);
  useEffect(list.reload, [started.length]);
  const shown = list.data?.replays.filter((replay) => !hasEnded(replay) || started.includes(replay.id)) ?? [];
  if (shown.length === 0) return null;

  function replace(changed: Replay): void {
    if (!list.data) return;
    const replays = list.data.replays.map((replay) => (replay.id === changed.id ? changed : replay));
    list.put({ ...list.data, replays });
  }

  return (
    <Panel title="Replays" actions={<a href="/replays">See all</a>} isFlush>
      <ul class="rows">
        {shown.map((replay) => (
          <ReplayRow key={replay.id} replay={replay} narrowedTo={narrowedTo(replay, webhooks)} onChanged={replace}>
            <div class="buttons">
              <ItsEvents of={replay} />
            </div>
          </ReplayRow>
        ))}
      </ul>
    </Panel>
  );
}
