import "./replays.css";
import { useLocation } from "preact-iso/router";
import type { Replay } from "../api/types.ts";
import { readWebhooks } from "../api/webhooks.ts";
import { count } from "../format/number.ts";
import { Button, LinkButton } from "../parts/button.tsx";
import { PageHead } from "../parts/page.tsx";
import { Panel } from "../parts/panel.tsx";
import { groupsOn, mayGoOn, withChanged } from "../parts/replay-groups.ts";
import { ReplaySkeleton } from "../parts/replay-row.tsx";
import { Empty, Shown } from "../parts/states.tsx";
import { useRefresh } from "../stream/live.ts";
import { useLoaded } from "../stream/load.ts";
import { urlOf } from "./replays/choice.ts";
import { NewReplay } from "./replays/new-replay.tsx";
import { pageSize, type ReplaysRead, readReplays } from "./replays/read-page.ts";
import { ReplayRows } from "./replays/rows.tsx";
import { useChoice } from "./replays/use-choice.ts";

const followEveryMs = 500;

/** Delivering stored events again: what to choose, and how earlier replays are doing. */
export function ReplaysPage() {
  const { query, route } = useLocation();
  const page = pageOf(query.page);
  const { choice, settled, change } = useChoice(page);
  const list = useLoaded(`page ${page}`, (signal) => readReplays(page, signal));
  useRefresh(["replay.progressed"], followEveryMs, list.reload);

  const webhooks = useLoaded("webhooks", readWebhooks);

  return (
    <>
      <PageHead title="Replays" />
      <div class="stack">
        <NewReplay
          choice={choice}
          settled={settled}
          onChange={change}
          onStarted={() => {
            if (page > 1) route(urlOf(choice, 1));
            else list.reload();
          }}
        />
        <Panel title="Replays so far" isFlush>
          <Shown
            of={list}
            skeleton={<ReplaySkeleton rows={3} />}
            isEmpty={({ total }) => total === 0}
            empty={<Empty sentence="No replays yet. Choose what to replay above; its progress appears here." />}
          >
            {(read) => (
              <>
                <ul class="rows">
                  <ReplayRows
                    groups={groupsOn(read)}
                    isPart={(group) => mayGoOn(group, read)}
                    webhooks={webhooks.data}
                    replays={read.replays}
                    markedId={query.id}
                    onChanged={(changed) => list.put(withAll(read, changed))}
                  />
                </ul>
                {read.total > pageSize && (
                  <Pages page={page} shown={read.replays.length} total={read.total} to={(n) => urlOf(choice, n)} />
                )}
              </>
            )}
          </Shown>
        </Panel>
      </div>
    </>
  );
}

const withAll = (read: ReplaysRead, changed: readonly Replay[]): ReplaysRead => ({
  ...read,
  newer: withChanged(read.newer, changed),
  replays: withChanged(read.replays, changed),
  older: withChanged(read.older, changed),
});

/** From 1. */
function pageOf(text: string | undefined): number {
  const page = Number(text);
  return Number.isSafeInteger(page) && page > 0 ? page : 1;
}

function Pages({ page, shown, total, to }: { page: number; shown: number; total: number; to(page: number): string }) {
  const before = (page - 1) * pageSize;
  return (
    <nav class="replay-pages" aria-label="Pages">
      <p class="soft small">
        {shown > 0 && `${count(before + 1)}–${count(before + shown)} of `}
        {count(total)} replays
      </p>
      <div class="buttons">
        {page > 1 ? <LinkButton href={to(page - 1)}>Newer</LinkButton> : <Button disabled>Newer</Button>}
        {before + shown < total ? <LinkButton href={to(page + 1)}>Older</LinkButton> : <Button disabled>Older</Button>}
      </div>
    </nav>
  );
}
