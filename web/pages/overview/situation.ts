import { call } from "../../api/client.ts";
import { serverNow } from "../../api/server-time.ts";
import type { EventPage, Failures, Webhook, WebhookHealth } from "../../api/types.ts";
import { type Failing, failingOf, nameOf } from "./failing.ts";
import type { Range } from "./range.ts";

/** Records of events since the same moment: how many, and whether that is all of them. */
export interface Total {
  readonly n: number;
  readonly isExact: boolean;
}

export interface WebhookLine {
  readonly id: string;
  readonly name: string;
  /** `active`, or why nothing is sent to it: `paused`, `disabled`. */
  readonly state: string;
  /** Null: there are too many webhooks to count for each. */
  readonly counts: { readonly delivered: Total; readonly all: Total } | null;
}

/** What works and what does not. */
export interface Situation {
  /** ISO 8601: what is counted are the events since. Failures are counted by whole hours, so everything is. */
  readonly from: string;
  readonly failing: readonly Failing[];
  /** Fail in so many ways that nobody tells them apart. */
  readonly others: number;
  readonly webhooks: readonly WebhookLine[];
  readonly delivered: Total;
  readonly failed: Total;
}

/** Each of them costs two requests. */
const mostCounted = 10;

export async function readSituation({ bucketMs, buckets }: Range, signal: AbortSignal): Promise<Situation> {
  const since = new Date(serverNow() - bucketMs * buckets).toISOString();
  const [failures, webhooks, health] = await Promise.all([
    call<Failures>("/v1/failures", { query: { from: since }, signal }),
    call<Webhook[]>("/v1/tenants/webhooks", { query: { expand: true }, signal }),
    call<WebhookHealth[]>("/v1/tenants/webhooks/health", { signal }),
  ]);
  const { from } = failures;
  const totalOf = async (state: string, webhook?: string): Promise<Total> => {
    const query = { from, webhook, size: 1, payload: false };
    const { total, totalIsExact = true } = await call<EventPage>(`/v1/events${state}`, { query, signal });
    return { n: total, isExact: totalIsExact };
  };
  const lineOf = async (webhook: Webhook): Promise<WebhookLine> => ({
    id: webhook.id,
    name: nameOf(webhook),
    state: webhook.state ?? "active",
    counts:
      webhooks.length > mostCounted
        ? null
        : { delivered: await totalOf(deliveredPath, webhook.id), all: await totalOf("", webhook.id) },
  });
  const [delivered, failed, lines] = await Promise.all([
    totalOf(deliveredPath),
    totalOf("/state/FAILED"),
    Promise.all(webhooks.map(lineOf)),
  ]);
  return {
    from,
    failing: failingOf(failures, webhooks, health),
    others: failures.others.waiting + failures.others.failed,
    webhooks: lines,
    delivered,
    failed,
  };
}

const deliveredPath = "/state/DELIVERED";
