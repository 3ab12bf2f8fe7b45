import { call } from "../../api/client.ts";
import { serverNow } from "../../api/server-time.ts";
import type { EventPage, Failures, Webhook, WebhookHealth } from "../../api/types.ts";
import { type Failing, failingOf, groupsOf, hasFailedSince, nameOf, type Receiver, receiverOf } from "./failing.ts";
import { type Range, startOf } from "./range.ts";

/** Records of events since the same moment: how many, and whether that is all of them. */
export interface Total {
  readonly n: number;
  readonly isExact: boolean;
}

export interface WebhookLine extends Receiver {
  /** Its name or host, in words. */
  readonly name: string;
  /** `active`, or why nothing is sent to it: `paused`, `disabled`. */
  readonly state: string;
  /** Its records; null: there are too many webhooks to count them for each. */
  readonly all: Total | null;
  /** How many of these were delivered; null: not counted either. */
  readonly delivered: Total | null;
  /** How many wait; null: not counted, because none failed. */
  readonly pending: Total | null;
  /** Null: not known, since some failures are in no group and there are too many webhooks to count those of each. */
  readonly hasFailed: boolean | null;
}

/** What works and what does not. */
export interface Situation {
  /** ISO 8601: the events since then are counted. */
  readonly from: string;
  readonly failing: readonly Failing[];
  /** How many fail in too many different ways to be listed separately. */
  readonly others: number;
  readonly webhooks: readonly WebhookLine[];
  readonly delivered: Total;
  readonly failed: Total;
}

/** Each one costs two requests. */
export const mostCounted = 10;
/** Enough to see failures in a row, and what gets through of several types. */
const newestSize = 10;

export async function readSituation(range: Range, signal: AbortSignal): Promise<Situation> {
  const since = new Date(startOf(range, serverNow())).toISOString();
  const [failures, webhooks] = await Promise.all([
    readFailures({ from: since }, signal),
    call<Webhook[]>("/v1/tenants/webhooks", { query: { expand: true }, signal }),
  ]);
  const { from } = failures;
  const others = failures.others.waiting + failures.others.failed;
  const health = await readHealth(webhooks, signal, others > 0);
  const totalIn = async (state: string, webhook?: string) =>
    totalOf(await readPage(state, { webhook, from, size: 1 }, signal));
  const lineOf = async (webhook: Webhook): Promise<WebhookLine> => {
    const known = { name: nameOf(webhook), state: webhook.state ?? "active" };
    const ofIt = health.get(webhook.id);
    const isListed = !!webhook.failing_since || failures.groups.some(({ webhookId }) => webhookId === webhook.id);
    const hasFailed = (failed: Total | null) => isListed || (others > 0 && hasFailedSince(from, failed, ofIt));
    if (webhooks.length > mostCounted) {
      const receiver = receiverOf(webhook, failures, null, ofIt);
      return { ...receiver, ...known, all: null, delivered: null, pending: null, hasFailed: hasFailed(null) };
    }
    const [newest, pending, failed] = await Promise.all([
      readNewest(webhook.id, from, signal),
      isListed ? totalIn("/state/PENDING", webhook.id) : null,
      others > 0 ? totalIn("/state/FAILED", webhook.id) : null,
    ]);
    return {
      ...{ ...receiverOf(webhook, failures, newest), ...known, ...newest.totals, pending },
      hasFailed: hasFailed(failed),
    };
  };
  const [delivered, failed, lines] = await Promise.all([
    totalIn("/state/DELIVERED"),
    totalIn("/state/FAILED"),
    Promise.all(webhooks.map(lineOf)),
  ]);
  return {
    from,
    failing: failingOf(failures, lines),
    others,
    webhooks: lines,
    ...{ delivered, failed },
  };
}

export async function readFailures(query: { from?: string; webhook?: string }, signal: AbortSignal) {
  const failures = await call<Failures>("/v1/failures", { query, signal });
  return { ...failures, groups: groupsOf(failures) };
}

/** By id: in one request, where reading the records of each webhook would take too many, or do not tell enough; otherwise nothing. */
export async function readHealth(webhooks: readonly Webhook[], signal: AbortSignal, isNeeded = false) {
  const isAsked = isNeeded || webhooks.length > mostCounted;
  const health = isAsked ? await call<WebhookHealth[]>("/v1/tenants/webhooks/health", { signal }) : [];
  return new Map(health.map((one) => [one.id, one]));
}

/** The newest records of a webhook, and how many it has. @param from ISO 8601: of the events since then */
export async function readNewest(webhook: string, from: string, signal: AbortSignal) {
  const [all, delivered] = await Promise.all([
    readPage("", { webhook, from, size: newestSize }, signal),
    readPage("/state/DELIVERED", { webhook, from, size: newestSize }, signal),
  ]);
  return {
    ...{ latest: all.events, delivered: delivered.events },
    totals: { all: totalOf(all), delivered: totalOf(delivered) },
  };
}

const readPage = (
  state: string,
  query: { webhook?: string | undefined; from: string; size: number },
  signal: AbortSignal,
) => call<EventPage>(`/v1/events${state}`, { query: { ...query, payload: false }, signal });

export const totalOf = ({ total, totalIsExact = true }: EventPage): Total => ({ n: total, isExact: totalIsExact });
