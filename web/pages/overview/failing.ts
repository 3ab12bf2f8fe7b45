import type { EventRecord, Failures, Webhook, WebhookHealth } from "../../api/types.ts";
import { hostOf } from "../../format/shorten.ts";

/** Deliveries to one webhook that fail with the same code and status: something the list of events can be narrowed to. */
export interface Cause {
  readonly code: string | null;
  readonly status: number | null;
  /** First lines of the responses, most frequent first; none where there was no response. */
  readonly answers: readonly string[];
  /** How many more there are, that are not known. */
  readonly moreAnswers: number;
  /** From the newest records; from all, if they are few. */
  readonly types: Group["eventTypes"];
  /** Records: waiting for a retry, and failed permanently. */
  readonly waiting: number;
  readonly failed: number;
  /** Nothing of these types has been delivered since. */
  readonly isOngoing: boolean;
  /** When the oldest of the events was accepted. */
  readonly firstAt: number;
  readonly lastFailedAt: number;
}

export interface Failing {
  /** Null: no webhook was registered. */
  readonly id: string | null;
  readonly name: string;
  readonly isRegistered: boolean;
  /** A webhook that accepts what failed is registered. */
  readonly canReplay: boolean;
  /** Since when nothing gets through; null: something has, after the last failure. */
  readonly downSince: number | null;
  /** Events of some type still fail, even if others get through. */
  readonly isOngoing: boolean;
  readonly causes: readonly Cause[];
  readonly waiting: number;
  readonly failed: number;
}

type Group = Omit<Failures["groups"][number], "eventIds"> & { readonly groups?: number };

/** A server before the upgrade, to which a request may still go, sums nothing up. */
type Report = Pick<Failures, "groups"> & Partial<Pick<Failures, "unlisted">>;

/** All of them; those that the server only sums up, without their answers and types, as one for each cause. */
export const groupsOf = ({ groups, unlisted = [] }: Report): Group[] => [
  ...groups,
  ...unlisted.map((sum) => ({ ...sum, answer: "", eventTypes: [] })),
];

/** What has become of the events that failed like this, in words; null: nothing more is known, or it is said elsewhere. */
export function sinceThen(
  { isOngoing, code }: Pick<Cause, "isOngoing" | "code">,
  { isRegistered, downSince }: Pick<Failing, "isRegistered" | "downSince">,
): "none of these delivered since" | "delivered again since" | null {
  // Where the webhook is gone, or there was none, failures end without a success.
  if (!isRegistered) return null;
  if (isOngoing) return downSince === null ? "none of these delivered since" : null;
  return saysNothing({ errorCode: code }) ? null : "delivered again since";
}

export const nameOf = ({ name, url }: Pick<Webhook, "name" | "url">): string => name || hostOf(url);

/** What is known about a registered webhook besides its failures. */
export interface Receiver extends Webhook {
  /** Since when nothing but failures has come of its events; null: something has been delivered, or it is not known. */
  readonly inARowSince: number | null;
  /** Some of what was delivered to it last; empty if that was not read. */
  readonly deliveredLately: readonly Told[];
}

/** This many failures in a row are no accident, and neither are fewer if nothing was delivered. */
const noAccident = 8;

type Told = Pick<EventRecord, "state" | "errorCode" | "eventType" | "ingestionTimestamp" | "lastAttemptAt">;

/** Records of one webhook, of events that arrived in the time that is looked at. */
export interface Newest {
  /** Newest first. */
  readonly latest: readonly Told[];
  /** Of those that were delivered, newest first. */
  readonly delivered: readonly Told[];
}

/** Says nothing about the webhook: it never failed like this, and so does not recover from it. */
export const saysNothing = ({ errorCode }: Pick<EventRecord, "errorCode">): boolean => errorCode === "server_restored";

/**
 * @param newest null: it was not read
 * @param health where there are too many webhooks to read the newest records of each
 */
export function receiverOf(
  webhook: Webhook,
  { groups }: { readonly groups: readonly Group[] },
  newest: Newest | null,
  health?: Counted,
): Receiver {
  const deliveredLately = newest?.delivered ?? [];
  const ongoing = groups.filter((group) => group.webhookId === webhook.id && goesOn(group, deliveredLately));
  const since = newest ? inARowSince(ongoing, newest) : health ? inARowByCount(ongoing, health) : null;
  return { ...webhook, inARowSince: since, deliveredLately };
}

/**
 * The server says so if it finds no success among the latest 100 records of the webhook. Behind a backlog all of these
 * wait, however much of it is delivered meanwhile.
 */
const goesOn = ({ ongoing, waiting, lastFailedAt, eventTypes }: Group, delivered: readonly Told[]): boolean =>
  ongoing &&
  (waiting > 0 ||
    !delivered.some(
      ({ lastAttemptAt, eventType }) =>
        Date.parse(lastAttemptAt ?? "") >= Date.parse(lastFailedAt) &&
        eventTypes.some(({ type }) => type === eventType),
    ));

/**
 * A record that was not tried yet tells nothing, and a webhook that hangs may have hundreds of these that are newer than
 * its first failure. The groups count every failure, and the newest records tell where groups mix old with new ones.
 */
function inARowSince(ongoing: readonly Group[], { latest, delivered }: Newest): number | null {
  if (ongoing.length === 0) return null;
  const firstAt = firstOf(ongoing);
  const [latestDelivered] = delivered;
  if (latestDelivered === undefined) return firstAt;
  const deliveredAt = Date.parse(latestDelivered.ingestionTimestamp);
  if (firstAt > deliveredAt && sum(ongoing.map(sizeOf)) >= noAccident) return firstAt;
  const row = latest
    .filter((record) => record.state !== "DELIVERED" && record.errorCode !== null && !saysNothing(record))
    .map(({ ingestionTimestamp }) => Date.parse(ingestionTimestamp))
    .filter((at) => at > deliveredAt);
  return row.length < noAccident ? null : Math.min(...row);
}

const firstOf = (groups: readonly Group[]): number =>
  Math.min(...groups.map(({ firstIngestionTimestamp }) => Date.parse(firstIngestionTimestamp)));

type Counted = Pick<WebhookHealth, "records" | "lastDeliveredAt">;

/** As far as numbers tell: all of its latest records failed, or many did and none before the latest success. */
function inARowByCount(ongoing: readonly Group[], { records, lastDeliveredAt }: Counted): number | null {
  if (ongoing.length === 0) return null;
  const [firstAt, failures] = [firstOf(ongoing), sum(ongoing.map(sizeOf))];
  const isInARow =
    lastDeliveredAt === null ? failures >= records : failures >= noAccident && firstAt > Date.parse(lastDeliveredAt);
  return isInARow ? firstAt : null;
}

/**
 * Whether a webhook has failures, whichever group they are in: what waits has not failed, unless it waits for a retry.
 *
 * @param failed its records that failed for good; null: not counted
 * @param health tells of its latest records also whether they wait for a retry
 */
export function hasFailedSince(
  from: string,
  failed: { readonly n: number } | null,
  health: Pick<WebhookHealth, "lastFailedAt"> | undefined,
): boolean | null {
  if (failed !== null && failed.n > 0) return true;
  if (Date.parse(health?.lastFailedAt ?? "") >= Date.parse(from)) return true;
  return failed === null ? null : false;
}

/** What fails, by webhook: first what can be replayed, then those that are down, then those with the most failures. */
export function failingOf(
  { groups }: { readonly groups: readonly Group[] },
  receivers: readonly Receiver[],
): Failing[] {
  const ofWebhooks = byKey(groups, ({ webhookId }) => webhookId ?? "");
  // A webhook that has been failing for longer may have received nothing in this time.
  for (const { id, failing_since } of receivers) if (failing_since && !ofWebhooks.has(id)) ofWebhooks.set(id, []);
  return [...ofWebhooks]
    .map(([id, ofOne]) => toFailing(id === "" ? null : id, ofOne, receivers))
    .sort((a, b) => rankOf(b) - rankOf(a) || sizeOf(b) - sizeOf(a));
}

const rankOf = ({ failed, canReplay, downSince }: Failing): number =>
  (failed > 0 && canReplay ? 2 : 0) + (downSince === null ? 0 : 1);

export const sizeOf = ({ waiting, failed }: Pick<Cause, "waiting" | "failed">): number => waiting + failed;

function toFailing(id: string | null, groups: readonly Group[], receivers: readonly Receiver[]): Failing {
  const receiver = receivers.find((one) => one.id === id);
  const causes = [...byKey(groups, ({ errorCode, statusCode }) => `${errorCode} ${statusCode}`).values()]
    .map((ofCause) => toCause(ofCause, receiver?.deliveredLately ?? []))
    .sort((a, b) => sizeOf(b) - sizeOf(a));
  const isOngoing = causes.some((cause) => cause.isOngoing);
  const nowhereSince = receivers.length === 0 ? Math.min(...causes.map(({ firstAt }) => firstAt)) : null;
  const inARowSince = isOngoing ? (receiver?.inARowSince ?? null) : null;
  return {
    id,
    name: id === null ? "No webhook" : nameOf(receiver ?? { name: "", url: groups[0]?.targetWebhook ?? "" }),
    isRegistered: receiver !== undefined,
    canReplay: id === null ? receivers.length > 0 : receiver !== undefined && receiver.state !== "disabled",
    // The server records it when nothing has got through for a minute; before that it shows in the newest records.
    downSince: id === null ? nowhereSince : Date.parse(receiver?.failing_since ?? "") || inARowSince,
    isOngoing: receiver !== undefined && isOngoing,
    causes,
    waiting: sum(causes.map(({ waiting }) => waiting)),
    failed: sum(causes.map(({ failed }) => failed)),
  };
}

/** Responses that begin differently form separate groups, which no list can tell apart. */
function toCause(groups: readonly Group[], delivered: readonly Told[]): Cause {
  const [first] = groups;
  const largest = groups.toSorted((a, b) => sizeOf(b) - sizeOf(a));
  return {
    code: first?.errorCode ?? null,
    status: first?.statusCode ?? null,
    answers: [...new Set(largest.map(({ answer }) => answer))].filter((answer) => answer !== ""),
    moreAnswers: sum(groups.map(({ statusCode, groups = 0 }) => (statusCode === null ? 0 : groups))),
    types: [
      ...byKey(
        groups.flatMap(({ eventTypes }) => eventTypes),
        ({ type }) => type ?? "",
      ).values(),
    ]
      .map((ofType) => ({ type: ofType[0]?.type ?? null, records: sum(ofType.map(({ records }) => records)) }))
      .sort((one, other) => other.records - one.records),
    waiting: sum(groups.map(({ waiting }) => waiting)),
    failed: sum(groups.map(({ failed }) => failed)),
    isOngoing: groups.some((group) => goesOn(group, delivered)),
    firstAt: Math.min(...groups.map((group) => Date.parse(group.firstIngestionTimestamp))),
    lastFailedAt: Math.max(...groups.map((group) => Date.parse(group.lastFailedAt))),
  };
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, n) => total + n, 0);

function byKey<T>(all: readonly T[], keyOf: (one: T) => string): Map<string, T[]> {
  const found = new Map<string, T[]>();
  for (const one of all) found.set(keyOf(one), [...(found.get(keyOf(one)) ?? []), one]);
  return found;
}
