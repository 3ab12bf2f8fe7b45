import { ingestedAtOf } from "../../../lib/id.ts";
import { formatIso } from "../../../lib/iso-time.ts";
import type { Random } from "../../../lib/random.ts";
import type { Account, Api } from "../rig/account.ts";
import { type Ledger, tallyKey } from "../rig/ledger.ts";
import { isExcused, type Outages } from "./outages.ts";

/** Bulk replays of one account, one after another, that run while the server is killed. */
export interface ReplayDriver {
  readonly figures: ReplayFigures;
  /** Call it when the server has started: notes what a crash has interrupted, and requests more replays. */
  look(api: Api): Promise<void>;
  /** How many replays have not ended. */
  unfinished(api: Api): Promise<number>;
  /** Checks every replay against its promise once all have ended. @param eventIds all of the account's, oldest first */
  audit(api: Api, eventIds: readonly string[]): Promise<void>;
}

export interface ReplayFigures {
  /** Some were requested while the server was killed, and never began. */
  asked: number;
  begun: number;
  completed: number;
  /** Replays interrupted by a crash before they had ended. */
  interrupted: number;
  /** Those of them interrupted with only part of their events queued. */
  interruptedQueueing: number;
  /** Distinct events that reached a webhook under the label of a replay. */
  deliveries: number;
}

export const createReplayFigures = (): ReplayFigures => ({
  asked: 0,
  begun: 0,
  completed: 0,
  interrupted: 0,
  interruptedQueueing: 0,
  deliveries: 0,
});

interface Asked {
  readonly label: string;
  /** For a timeline replay: ingestion times, both inclusive. */
  readonly range: { from: number; to: number } | null;
  /** False: the server went away before it answered, so the replay may have begun or not. */
  isAcknowledged: boolean;
}

interface ReplayBody {
  id: string;
  replayGroupId: string;
  status: string;
  selected: number;
  queued: number;
  delivered: number;
  failed: number;
  superseded: number;
  skipped: number;
}

/** One that runs and one that waits for it. */
const unfinishedAtOnce = 2;
const fewestEvents = 20;

export function createReplayDriver(
  account: Account,
  { ledger, random, outages }: { ledger: Ledger; random: Random; outages: Pick<Outages, "excuses"> },
): ReplayDriver {
  const figures = createReplayFigures();
  const asked = new Map<string, Asked>();
  const interrupted = new Set<string>();
  const interruptedQueueing = new Set<string>();
  const { session: token } = account;

  const list = async (api: Api) =>
    (await api.send<{ replays: ReplayBody[] }>("GET", "/v1/events/replays?size=1000", 200, { token })).replays;
  const isUnfinished = ({ status }: ReplayBody) => status === "waiting" || status === "running";

  async function ask(api: Api): Promise<void> {
    const acknowledged = ledger.requests
      .filter((request) => request.account === account && request.fate === "acknowledged")
      .flatMap(({ events }) => events.flatMap(({ eventId }) => eventId ?? []))
      .sort();
    if (acknowledged.length < fewestEvents) return;
    figures.asked += 1;
    const label = `replay № ${figures.asked} of ${account.id}`;
    const isTimeline = random.chance(0.5);
    // Ends well before the latest event: nothing else can still be given a time in that range.
    const range = isTimeline ? { from: timeAt(acknowledged, 0.2), to: timeAt(acknowledged, 0.8) } : null;
    const replay: Asked = { label, range, isAcknowledged: false };
    asked.set(label, replay);
    const times = range && { startTime: formatIso(range.from), endTime: formatIso(range.to) };
    const path = `/v1/events/replays/${isTimeline ? "timeline" : "all"}`;
    await api.send("POST", path, 202, { token, body: { replayGroupId: label, ...times } });
    replay.isAcknowledged = true;
  }

  /** The events that a replay has to deliver. */
  function selectionOf({ range }: Asked, { selected }: ReplayBody, eventIds: readonly string[]): readonly string[] {
    if (range === null) return eventIds.slice(0, selected);
    return eventIds.filter((eventId) => ingestedAtOf(eventId) >= range.from && ingestedAtOf(eventId) <= range.to);
  }

  function auditOne(replay: Asked, body: ReplayBody, eventIds: readonly string[]): void {
    const name = `${replay.range ? "timeline" : "all"} replay "${replay.label}"`;
    const selection = selectionOf(replay, body, eventIds);
    const due = selection.length * account.hooks.length;
    const { status, selected, queued, delivered, failed, superseded, skipped } = body;
    const found = { status, selected, queued, delivered, failed, superseded, skipped };
    const expected = {
      status: "completed",
      selected: selection.length,
      queued: due,
      delivered: due,
      failed: 0,
      superseded: 0,
      skipped: 0,
    };
    if (!Bun.deepEquals(found, expected)) {
      ledger.fault(`the ${name} ended as ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
    }
    const chosen = new Set(selection);
    for (const { path } of account.hooks) {
      const reached = eventIds.filter((eventId) =>
        ledger.tallies.get(tallyKey(path, eventId))?.concluded.has(replay.label),
      );
      const missed = selection.length - reached.filter((eventId) => chosen.has(eventId)).length;
      if (missed > 0) ledger.fault(`the ${name} did not deliver ${missed} of ${selection.length} events to ${path}`);
      const added = reached.length - (selection.length - missed);
      if (added > 0) ledger.fault(`the ${name} delivered ${added} events to ${path} that it did not select`);
      figures.deliveries += reached.length;
    }
    figures.completed += status === "completed" ? 1 : 0;
  }

  return {
    figures,
    async look(api) {
      try {
        const unfinished = (await list(api)).filter(isUnfinished);
        for (const { id, queued, selected } of unfinished) {
          interrupted.add(id);
          if (queued > 0 && queued < selected * account.hooks.length) interruptedQueueing.add(id);
        }
        figures.interrupted = interrupted.size;
        figures.interruptedQueueing = interruptedQueueing.size;
        for (let n = unfinished.length; n < unfinishedAtOnce; n++) await ask(api);
      } catch (error) {
        // No answer means that the server was killed meanwhile.
        if (!isExcused(error, outages)) ledger.fault(String(error));
      }
    },
    unfinished: async (api) => (await list(api)).filter(isUnfinished).length,
    async audit(api, eventIds) {
      const found = new Map<string, ReplayBody>();
      for (const body of await list(api)) {
        if (found.has(body.replayGroupId)) ledger.fault(`the replay "${body.replayGroupId}" started twice`);
        if (!asked.has(body.replayGroupId)) ledger.fault(`nobody requested the replay "${body.replayGroupId}"`);
        found.set(body.replayGroupId, body);
      }
      figures.begun = found.size;
      for (const replay of asked.values()) {
        const body = found.get(replay.label);
        if (body) auditOne(replay, body, eventIds);
        else if (replay.isAcknowledged) ledger.fault(`the replay "${replay.label}" was acknowledged and is lost`);
      }
    },
  };
}

/** Ingestion time of the event at a given fraction of the list. */
const timeAt = (eventIds: readonly string[], share: number): number =>
  ingestedAtOf(eventIds[Math.floor((eventIds.length - 1) * share)] ?? "");
