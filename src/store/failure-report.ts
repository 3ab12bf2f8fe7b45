import type { FailureCode } from "../domain/failure.ts";
import { noWebhookKey, noWebhookKind, othersKey } from "../domain/failure-groups.ts";
import { encodeEventId, ingestedAtMs } from "../lib/id.ts";
import { hourOf, seqsInHour } from "./failure-key.ts";
import type { FailureGroup, FailureReport } from "./failures.ts";

/** Groups shown in a report, largest first. The others are only counted. */
const shownGroups = 100;
/** How many of a group's newest records are looked at for its event types. */
export const newestLooked = 500;
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
  /** Newest first, at most `newestLooked`. */
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
  fromHour: hourOf(from * seqsInMs),
  toHour: hourOf(to * seqsInMs),
});

const seqsInMs = seqsInHour / 3_600_000;

export const seqsOf = ({ fromHour, toHour }: HourRange): { fromSeq: number; toSeq: number } => ({
  fromSeq: fromHour * seqsInHour,
  toSeq: (toHour + 1) * seqsInHour - 1,
});

/** What a backend reads, each by index. */
export interface FailureReads {
  counted(): Promise<readonly CountedGroup[]>;
  places(failureKeys: readonly number[]): Promise<readonly GroupPlaces[]>;
  events(seqs: readonly number[]): Promise<readonly FoundEvent[]>;
}

/** The work is bounded by the groups an account may have and the hours requested, however long the history. */
export async function reportFailures(reads: FailureReads, hours: HourRange): Promise<FailureReport> {
  const counted = await reads.counted();
  const others = counted.find(({ failureKey }) => failureKey === othersKey);
  const groups = counted
    .filter(({ failureKey }) => failureKey !== othersKey)
    .sort((a, b) => b.waiting + b.failed - (a.waiting + a.failed) || b.lastFailedAt - a.lastFailedAt);
  const shown = groups.slice(0, shownGroups);
  const places = new Map(
    (await reads.places(shown.map(({ failureKey }) => failureKey))).map((one) => [one.failureKey, one]),
  );
  const wanted = new Set(
    [...places.values()].flatMap((one) => [...samplesOf(one), ...typesOf(one).map(({ eventSeq }) => eventSeq)]),
  );
  const events = new Map((await reads.events([...wanted])).map((event) => [event.seq, event]));
  const { fromSeq, toSeq } = seqsOf(hours);
  return {
    from: ingestedAtMs(fromSeq),
    to: ingestedAtMs(toSeq),
    groups: shown.flatMap((group) => {
      const found = places.get(group.failureKey);
      // None: the group has lost its last record since.
      return found ? toGroup(group, found, events) : [];
    }),
    total: groups.length,
    others: { waiting: others?.waiting ?? 0, failed: others?.failed ?? 0 },
  };
}

const samplesOf = ({ newest }: GroupPlaces): number[] => newest.slice(0, shownEvents).map(({ eventSeq }) => eventSeq);

/** The most frequent types, each with one event from which the type can be read. */
function typesOf({ newest }: GroupPlaces): { eventSeq: number; records: number }[] {
  return [...Map.groupBy(newest, ({ typeHash }) => typeHash).values()]
    .map((ofType) => ({ eventSeq: ofType[0]?.eventSeq ?? 0, records: ofType.length }))
    .sort((a, b) => b.records - a.records)
    .slice(0, shownTypes);
}

function toGroup(group: CountedGroup, places: GroupPlaces, events: ReadonlyMap<number, FoundEvent>): FailureGroup {
  const { failureKey, waiting, failed, lastFailedAt, webhookId, url } = group;
  const kind = failureKey === noWebhookKey ? noWebhookKind : group;
  const found = (seqs: readonly number[]) => seqs.flatMap((seq) => events.get(seq) ?? []);
  return {
    webhook: webhookId === null || url === null ? null : { id: webhookId, url },
    code: kind.code ?? noWebhookKind.code,
    status: kind.status,
    line: kind.line ?? "",
    ...{ waiting, failed, lastFailedAt },
    firstEventAt: ingestedAtMs(places.firstSeq),
    lastEventAt: ingestedAtMs(places.newest[0]?.eventSeq ?? places.firstSeq),
    eventIds: found(samplesOf(places)).map(({ seq, idTail }) => encodeEventId(seq, idTail)),
    types: typesOf(places).flatMap(({ eventSeq, records }) => {
      const event = events.get(eventSeq);
      return event ? { type: event.type, records } : [];
    }),
    typeHashes: [...new Set(places.newest.map(({ typeHash }) => typeHash))],
  };
}
