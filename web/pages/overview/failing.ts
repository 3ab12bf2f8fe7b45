import type { Failures, Webhook, WebhookHealth } from "../../api/types.ts";
import { shortenUrl } from "../../format/shorten.ts";

/** Deliveries to one webhook that fail with one code and one status: what the list of events can be narrowed to. */
export interface Cause {
  readonly code: string | null;
  readonly status: number | null;
  /** First lines of what came back, the most frequent first; none where nothing did. */
  readonly answers: readonly string[];
  readonly types: readonly string[];
  /** Records: for a retry, and for good. */
  readonly waiting: number;
  readonly failed: number;
  /** When the oldest of the events was accepted. */
  readonly firstAt: number;
  readonly lastFailedAt: number;
}

export interface Failing {
  /** Null: no webhook was registered. */
  readonly id: string | null;
  readonly name: string;
  /** Something is registered that its events can be sent to. */
  readonly isRegistered: boolean;
  /** Since when nothing gets through; null: something has, after the last failure. */
  readonly downSince: number | null;
  readonly causes: readonly Cause[];
  readonly waiting: number;
  readonly failed: number;
}

type Group = Failures["groups"][number];

export const nameOf = ({ name, url }: Pick<Webhook, "name" | "url">): string =>
  name || shortenUrl(url.replace(/^https?:\/\//, ""), 40);

/** What fails, by webhook: those that are down first, and then those that most failed for. */
export function failingOf(
  { groups }: Pick<Failures, "groups">,
  webhooks: readonly Webhook[],
  health: readonly WebhookHealth[],
): Failing[] {
  return [...byKey(groups, ({ webhookId }) => webhookId ?? "").values()]
    .map((ofOne) => toFailing(ofOne, webhooks, health))
    .sort((a, b) => Number(b.downSince !== null) - Number(a.downSince !== null) || sizeOf(b) - sizeOf(a));
}

export const sizeOf = ({ waiting, failed }: Pick<Cause, "waiting" | "failed">): number => waiting + failed;

function toFailing(groups: readonly Group[], webhooks: readonly Webhook[], health: readonly WebhookHealth[]): Failing {
  const id = groups[0]?.webhookId ?? null;
  const url = groups[0]?.targetWebhook ?? "";
  const registered = webhooks.find((webhook) => webhook.id === id);
  const causes = [...byKey(groups, ({ errorCode, statusCode }) => `${errorCode} ${statusCode}`).values()]
    .map(toCause)
    .sort((a, b) => sizeOf(b) - sizeOf(a));
  const deliveredAt = Date.parse(health.find((one) => one.id === id)?.lastDeliveredAt ?? "") || 0;
  const firstAt = Math.min(...causes.map((cause) => cause.firstAt));
  const isDown =
    (id === null ? webhooks.length === 0 : registered !== undefined) &&
    groups.some(({ ongoing }) => ongoing) &&
    causes.some(({ lastFailedAt }) => lastFailedAt > deliveredAt);
  return {
    id,
    name: id === null ? "No webhook" : nameOf(registered ?? { name: "", url }),
    isRegistered: id === null ? webhooks.length > 0 : registered !== undefined,
    downSince: isDown ? Math.max(firstAt, deliveredAt) : null,
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
    types: [...new Set(largest.flatMap(({ eventTypes }) => eventTypes))],
    waiting: sum(groups.map(({ waiting }) => waiting)),
    failed: sum(groups.map(({ failed }) => failed)),
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
