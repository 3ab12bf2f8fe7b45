import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { call, callForReplay } from "../../api/client.ts";
import { accountId } from "../../api/session.ts";
import type { Replay, ReplayPage } from "../../api/types.ts";
import { labelOf } from "../../format/label.ts";
import { Button, LinkButton } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { readAhead } from "../../parts/read-ahead.ts";
import { hasEnded, sumOf } from "../../parts/replay-groups.ts";
import { cancelReplays, ItsEvents, ReplayRow } from "../../parts/replay-row.tsx";
import { Shown, Skeleton } from "../../parts/states.tsx";
import { useRefresh } from "../../stream/live.ts";
import { useLoaded } from "../../stream/load.ts";
import type { ListedRecord } from "./record.ts";
import type { ReplayThese } from "./replay-these.ts";

/** The replay last started in this tab, until it is dismissed. */
interface Started {
  readonly tenantId: string;
  /** More than one: one for each delivery of a page. */
  readonly ids: readonly string[];
  /** For several: the ids of the events that these deliveries are of. */
  readonly events: ReadonlySet<string>;
  readonly label: string;
  readonly narrowedTo: string;
  /** Where several replays link to: they have no list of their own. */
  readonly eventsUrl: string;
  /** The list that it was started from. */
  readonly listUrl: string;
  readonly isOver: boolean;
}

type About = Pick<Started, "narrowedTo" | "eventsUrl" | "listUrl">;

const started = signal<Started | null>(null);

/**
 * Starts a replay and follows it.
 * @param onLeft called with what is left of a page, if some of it was accepted
 * @throws ApiError, if not all of it could be started
 */
export async function startReplay(
  these: ReplayThese,
  about: About,
  onLeft: (left: readonly ListedRecord[]) => void,
): Promise<void> {
  const isPage = these.by === "page";
  const before = isPage && these.isRest ? started.peek() : null;
  const label = before?.label ?? labelOf("dashboard", Date.now());
  const ids = [...(before?.ids ?? [])];
  const events = new Set(before?.events);
  let accepted = 0;
  const tenantId = accountId.peek();
  const follow = () => {
    if (ids.length > 0) started.value = { tenantId, ids, events, label, ...about, isOver: false };
  };
  const post = async (kind: string, body: object) => {
    ids.push(await callForReplay(kind, { ...body, replayGroupId: label }));
  };
  try {
    if (!isPage) await post(these.kind, these.fields);
    else {
      for (const { eventId, targetWebhook } of these.records) {
        await post("single", { eventId, ...(targetWebhook !== "" && { webhook: targetWebhook }) });
        events.add(eventId);
        accepted += 1;
      }
    }
  } finally {
    follow();
    if (isPage && accepted > 0 && accepted < these.records.length) onLeft(these.records.slice(accepted));
  }
}

const followEveryMs = 500;

function asOne([first, ...others]: readonly Replay[]): Replay {
  if (!first) throw new Error("The replays are not listed.");
  return others.length === 0 ? first : sumOf([first, ...others], "Listed deliveries");
}

/** Null for an account that signed in after the one that started it. */
const ownReplay = (): Started | null => (started.value?.tenantId === accountId.value ? started.value : null);

/** Whether a replay of this list is under way. */
export function isReplaying(listUrl: string): boolean {
  const now = ownReplay();
  return now?.listUrl === listUrl && !now.isOver;
}

/** The progress of the replay started here. @param onOver called for the list that is shown */
export function Replaying({ listUrl, onOver }: { listUrl: string; onOver(): void }) {
  const now = ownReplay();
  if (now === null) return null;
  return <Progress key={now.ids[0]} of={now} onOver={() => now.listUrl === listUrl && onOver()} />;
}

function Progress({ of, onOver }: { of: Started; onOver(): void }) {
  const { ids, label, narrowedTo } = of;
  const [id = ""] = ids;
  const loaded = useLoaded(ids.join(), async (signal) => {
    if (ids.length === 1) {
      const replay = await call<Replay>(`/v1/events/replays/${id}`, { signal });
      return { replay, ahead: replay.status === "waiting" ? await readAhead(id) : undefined };
    }
    const { replays } = await call<ReplayPage>("/v1/events/replays", { query: { size: ids.length + 100 }, signal });
    return { replay: asOne(replays.filter((one) => ids.includes(one.id))) };
  });
  useRefresh(["replay.progressed"], followEveryMs, loaded.reload);

  const isOver = loaded.data !== undefined && hasEnded(loaded.data.replay);
  useEffect(() => {
    // An effect runs after the frame: the rest of a page may have been accepted since.
    if (!isOver || of.isOver || started.peek() !== of) return;
    started.value = { ...of, isOver };
    onOver();
  }, [isOver]);

  return (
    <section class="panel replaying" aria-label="Replay">
      <Shown of={loaded} skeleton={<Skeleton width="100%" height="64px" />}>
        {({ replay, ahead }) => (
          <ul>
            <ReplayRow
              replay={{ ...replay, replayGroupId: label }}
              ahead={ahead}
              {...(ids.length > 1 && { events: of.events.size })}
              narrowedTo={narrowedTo}
              onCancel={async () => loaded.put({ replay: asOne(await cancelReplays(ids)) })}
            >
              <div class="buttons">
                {ids.length === 1 ? (
                  <ItsEvents of={replay} />
                ) : (
                  <LinkButton href={of.eventsUrl}>See its events</LinkButton>
                )}
                {hasEnded(replay) && (
                  <Button
                    kind="quiet"
                    class="end"
                    onClick={() => (started.value = null)}
                    aria-label="Dismiss the replay"
                  >
                    <Icon name="cross" />
                  </Button>
                )}
              </div>
            </ReplayRow>
          </ul>
        )}
      </Shown>
    </section>
  );
}
