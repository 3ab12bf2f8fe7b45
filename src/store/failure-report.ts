import type { FailureCode } from "../domain/failure.ts";
import { hourMs, noWebhookKey, noWebhookKind, othersKey } from "../domain/failure-groups.ts";
import { encodeEventId, ingestedAtMs } from "../lib/id.ts";
import { seqsInHour } from "./failure-key.ts";
import type { FailureGroup, FailureReport, UnlistedGroup } from "./failures.ts";

/** Groups shown in a report, largest first. The others are only counted. */
const shownGroups = 100;
/** How many of a group's newest records are looked at for its event types. */
export const newestLooked = 500;
/** The same of a group that is not shown: there may be 900, of which only whether they go on is asked. */
const newestLookedUnlisted = 10;
const shownTypes = 10;
const shownEvents = 3;

/** A group, with its counts over the requested hours. */
export interface CountedGroup {
  failureKey: number;
  waiting: number;
  failed: number;
  lastFailedAt: number;
  webhookId: string | null;
  url: string | null;
  /** Null when the group has a fixed key. */
  code: FailureCode | null;
  status: number | null;
  line: string | null;
}

/** Where the records of a group lie. */
export interface GroupPlaces {
  failureKey: number;
  firstSeq: number;
  /** Newest first, at most as many as were asked for. */
  newest: readonly { eventSeq: number; typeHash: number | null }[];
}

export interface FoundEvent {
  seq: number;
  idTail: Uint8Array;
  type: string | null;
}

/** Whole hours, both inclusive. */
export interface HourRange {
  readonly fromHour: number;
  readonly toHour: number;
}

export const hoursOf = ({ from, to }: { readonly from: number; readonly to: number }): HourRange => ({
  fromHour: Math.floor(from / hourMs),
  toHour: Math.floor(to / hourMs),
});

export const seqsOf = ({ fromHour, toHour }: HourRange): { fromSeq: number; toSeq: number } => ({
  fromSeq: fromHour * seqsInHour,
  toSeq: (toHour + 1) * seqsInHour - 1,
});

/** What a backend reads, each by index. */
export interface FailureReads {
  counted(): Promise<readonly CountedGroup[]>;
  places(failureKeys: readonly number[], newest: number): Promise<readonly GroupPlaces[]>;
  events(seqs: readonly number[]): Promise<readonly FoundEvent[]>;
}

/** The work is bounded by the groups an account may have and the hours requested, however long the history. */
export async function reportFailures(reads: FailureReads, hours: HourRange): Promise<FailureReport> {
  const counted = await reads.counted();
  const others = counted.find(({ failureKey }) => failureKey === othersKey);
  const groups = counted
    .filter(({ failureKey }) => failureKey !== othersKey)
    .sort((a, b) => b.waiting + b.failed - (a.waiting + a.failed) || b.lastFailedAt - a.lastFailedAt);
  const placed = (from: number, to: number, newest: number) => withPlaces(reads, groups.slice(from, to), newest);
  const shown = await placed(0, shownGroups, newestLooked);
  const unlisted = await placed(shownGroups, groups.length, newestLookedUnlisted);
  const wanted = new Set(
    shown.flatMap(([, one]) => [...samplesOf(one), ...typesOf(one).map(({ eventSeq }) => eventSeq)]),
  );
  const events = new Map((await reads.events([...wanted])).map((event) => [event.seq, event]));
  return {
    from: hours.fromHour * hourMs,
    to: (hours.toHour + 1) * hourMs - 1,
    groups: shown.map(([group, places]) => toGroup(group, places, events)),
    unlisted: unlisted.map(([group, places]) => toUnlisted(group, places)),
    total: groups.length,
    others: { waiting: others?.waiting ?? 0, failed: others?.failed ?? 0 },
  };
}

async function withPlaces(
  reads: FailureReads,
  groups: readonly CountedGroup[],
  newest: number,
): Promise<[CountedGroup, GroupPlaces][]> {
  if (groups.length === 0) return [];
  const found = await reads.places(
    groups.map(({ failureKey }) => failureKey),
    newest,
  );
  const places = new Map(found.map((one) => [one.failureKey, one]));
  return groups.flatMap((group): [CountedGroup, GroupPlaces][] => {
    const own = places.get(group.failureKey);
    // None: the group has lost its last record since.
    return own ? [[group, own]] : [];
  });
}

const samplesOf = ({ newest }: GroupPlaces): number[] => newest.slice(0, shownEvents).map(({ eventSeq }) => eventSeq);

/** The most frequent types, each with one event from which the type can be read. */
function typesOf({ newest }: GroupPlaces): { eventSeq: number; records: number }[] {
  return [...Map.groupBy(newest, ({ typeHash }) => typeHash).values()]
    .map((ofType) => ({ eventSeq: ofType[0]?.eventSeq ?? 0, records: ofType.length }))
    .sort((a, b) => b.records - a.records)
    .slice(0, shownTypes);
}

const kindOf = (group: CountedGroup) => (group.failureKey === noWebhookKey ? noWebhookKind : group);

function toUnlisted(group: CountedGroup, { newest, firstSeq }: GroupPlaces): UnlistedGroup {
  const { waiting, failed, lastFailedAt, webhookId, url } = group;
  const { code, status } = kindOf(group);
  return {
    webhook: webhookId === null || url === null ? null : { id: webhookId, url },
    code: code ?? noWebhookKind.code,
    status,
    ...{ waiting, failed, lastFailedAt },
    firstEventAt: ingestedAtMs(firstSeq),
    lastEventAt: ingestedAtMs(newest[0]?.eventSeq ?? firstSeq),
    typeHashes: [...new Set(newest.map(({ typeHash }) => typeHash))],
  };
}

function toGroup(group: CountedGroup, places: GroupPlaces, events: ReadonlyMap<number, FoundEvent>): FailureGroup {
  const found = (seqs: readonly number[]) => seqs.flatMap((seq) => events.get(seq) ?? []);
  return {
    ...toUnlisted(group, places),
    line: kindOf(group).line ?? "",
    eventIds: found(samplesOf(places)).map(({ seq, idTail }) => encodeEventId(seq, idTail)),
    types: typesOf(places).flatMap(({ eventSeq, records }) => {
      const event = events.get(eventSeq);
      return event ? { type: event.type, records } : [];
    }),
  };
}
