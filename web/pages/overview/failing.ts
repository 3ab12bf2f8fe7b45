import type { EventRecord, Failures, Webhook, WebhookHealth } from "../../api/types.ts";
import { hostOf } from "../../format/shorten.ts";

/** Deliveries to one webhook that fail with one code and one status: what the list of events can be narrowed to. */
export interface Cause {
  readonly code: string | null;
  readonly status: number | null;
  /** First lines of what came back, the most frequent first; none where nothing did. */
  readonly answers: readonly string[];
  /** Of the newest records; of all, if they are few. */
  readonly types: Group["eventTypes"];
  /** Records: for a retry, and for good. */
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
  /** Something is registered that takes what failed. */
  readonly canReplay: boolean;
  /** Since when nothing gets through; null: something has, after the last failure. */
  readonly downSince: number | null;
  /** Events of some type still fail, though others may get through. */
  readonly isOngoing: boolean;
  readonly causes: readonly Cause[];
  readonly waiting: number;
  readonly failed: number;
}

type Group = Failures["groups"][number];

export const nameOf = ({ name, url }: Pick<Webhook, "name" | "url">): string => name || hostOf(url);

/** What is known of a registered webhook beside its failures. */
export interface Receiver extends Webhook {
  readonly lastDeliveredAt: string | null;
  /** Each of its newest records has failed, or waits after a failure. */
  readonly isFailingThrough: boolean;
}

/** @param newest its latest records; none: they were not read */
export function receiverOf(
  webhook: Webhook,
  health: readonly WebhookHealth[],
  newest: readonly Pick<EventRecord, "state" | "errorCode">[],
): Receiver {
  return {
    ...webhook,
    lastDeliveredAt: health.find(({ id }) => id === webhook.id)?.lastDeliveredAt ?? null,
    isFailingThrough:
      newest.length > 0 && newest.every(({ state, errorCode }) => state !== "DELIVERED" && errorCode !== null),
  };
}

/** What fails, by webhook: those that are down first, and then those that most failed for. */
export function failingOf(
  { groups }: Pick<Failures, "groups">,
  receivers: readonly Receiver[],
  nowMs: number,
): Failing[] {
  return [...byKey(groups, ({ webhookId }) => webhookId ?? "").values()]
    .map((ofOne) => toFailing(ofOne, receivers, nowMs))
    .sort((a, b) => Number(b.downSince !== null) - Number(a.downSince !== null) || sizeOf(b) - sizeOf(a));
}

export const sizeOf = ({ waiting, failed }: Pick<Cause, "waiting" | "failed">): number => waiting + failed;

/** Without a delivery for so long, a webhook is down, and no longer one that fails now and then. */
const patienceMs = 60_000;

function toFailing(groups: readonly Group[], receivers: readonly Receiver[], nowMs: number): Failing {
  const id = groups[0]?.webhookId ?? null;
  const receiver = receivers.find((one) => one.id === id);
  const causes = [...byKey(groups, ({ errorCode, statusCode }) => `${errorCode} ${statusCode}`).values()]
    .map(toCause)
    .sort((a, b) => sizeOf(b) - sizeOf(a));
  const deliveredAt = Date.parse(receiver?.lastDeliveredAt ?? "") || 0;
  const firstAt = Math.min(...causes.map((cause) => cause.firstAt));
  const isDown =
    (id === null ? receivers.length === 0 : receiver !== undefined) &&
    causes.some(({ isOngoing }) => isOngoing) &&
    causes.some(({ lastFailedAt }) => lastFailedAt > deliveredAt) &&
    (nowMs - deliveredAt > patienceMs || receiver?.isFailingThrough === true);
  return {
    id,
    name: id === null ? "No webhook" : nameOf(receiver ?? { name: "", url: groups[0]?.targetWebhook ?? "" }),
    isRegistered: receiver !== undefined,
    canReplay: id === null ? receivers.length > 0 : receiver !== undefined && receiver.state !== "disabled",
    downSince: isDown ? Date.parse(receiver?.failing_since ?? "") || Math.max(firstAt, deliveredAt) : null,
    isOngoing: receiver !== undefined && causes.some(({ isOngoing }) => isOngoing),
    causes,
    waiting: sum(causes.map(({ waiting }) => waiting)),
    failed: sum(causes.map(({ failed }) => failed)),
  };
}

/** Answers that begin otherwise are other groups, which no list tells apart. */
function toCause(groups: readonly Group[]): Cause {
  const [first] = groups;
  const largest = groups.toSorted((a, b) => sizeOf(b) - sizeOf(a));
  return {
    code: first?.errorCode ?? null,
    status: first?.statusCode ?? null,
    answers: [...new Set(largest.map(({ answer }) => answer))].filter((answer) => answer !== ""),
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
    isOngoing: groups.some(({ ongoing }) => ongoing),
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
