import "./overview.css";
import { useLocation } from "preact-iso/router";
import { call } from "../api/client.ts";
import type { EventPage } from "../api/types.ts";
import { LinkButton } from "../parts/button.tsx";
import { PageHead } from "../parts/page.tsx";
import { Empty, Shown } from "../parts/states.tsx";
import { useRefresh } from "../stream/live.ts";
import { useLoaded } from "../stream/load.ts";
import { deliveryKinds, OverTime, RangeChoice, useMoveOn, useStats } from "./overview/over-time.tsx";
import { type Range, ranges, readRange, urlOf } from "./overview/range.ts";
import { readSituation } from "./overview/situation.ts";
import { Standing, StandingSkeleton } from "./overview/standing.tsx";
import { Summary } from "./overview/summary.tsx";

/** Is it working, and what failed: in the last hour, or in up to a week. */
export function OverviewPage() {
  const range = readRange(useLocation().query);
  const stats = useStats(range);
  const situation = useSituation(range);
  const isUnused = useIsUnused();
  if (isUnused === true) {
    return (
      <>
        <PageHead title="Overview" />
        <Empty sentence="No events yet. What becomes of each one will appear here.">
          <LinkButton kind="primary" href="/welcome">
            Send your first event
          </LinkButton>
        </Empty>
      </>
    );
  }
  return (
    <>
      <PageHead title="Overview">
        <div class="end">
          <RangeChoice chosen={range} urlOf={urlOf} />
        </div>
      </PageHead>
      <div class="stack">
        <Shown of={isUnused === null ? { ...situation, data: undefined } : situation} skeleton={<StandingSkeleton />}>
          {(data) => (
            <>
              <Standing situation={data} range={range} onChanged={situation.reload} />
              <Summary situation={data} waiting={stats.data?.waiting} />
            </>
          )}
        </Shown>
        {/* Anything appearing above it later would move it. */}
        <OverTime
          of={situation.data === undefined && situation.error === null ? { ...stats, data: undefined } : stats}
          range={range}
        />
      </div>
    </>
  );
}

/** Reading it takes several requests, and for ranges of days it counts a lot. */
const situationEveryMs = ({ key }: Range) => (key === ranges[0].key ? 3000 : 10_000);

function useSituation(range: Range) {
  const situation = useLoaded(`situation ${range.key}`, (signal) => readSituation(range, signal));
  useRefresh([...deliveryKinds, "webhook.changed", "account.changed"], situationEveryMs(range), situation.reload);
  // The user who started a replay is waiting for it.
  useRefresh(["replay.progressed"], situationEveryMs(range) / 3, situation.reload);
  useMoveOn(situation.reload);
  return situation;
}

const unusedEveryMs = 2000;

/** Whether no event has ever arrived; null until that is known. */
function useIsUnused(): boolean | null {
  const any = useLoaded("any event", (signal) =>
    call<EventPage>("/v1/events", { query: { size: 1, payload: false }, signal }),
  );
  const isUnused = any.data?.total === 0;
  useRefresh(["event.accepted"], unusedEveryMs, () => {
    if (isUnused) any.reload();
  });
  // If it fails, the page itself says so.
  return any.data === undefined && any.error === null ? null : isUnused;
}
