import type { WebhookLimits, WebhookRef } from "../../domain/webhook.ts";
import { createWebhookQueue, type WebhookQueue } from "./webhook-queue.ts";

/** The queues of all webhooks that have something to do, or recently had. */
export interface WebhookQueues {
  get(webhookKey: number): WebhookQueue | undefined;
  /** Like `get`, but makes one if there is none. */
  of(webhook: WebhookRef): WebhookQueue;
  ofTenant(tenantKey: number): WebhookQueue[];
  all(): WebhookQueue[];
  /** Forgets this one; another that has taken its place since stays. */
  remove(queue: WebhookQueue): void;
}

/** How many webhooks are remembered at a time; those with something pending stay in any case. */
const maxQueues = 20_000;
/** How many of them a sweep leaves, so that it is not needed again soon. */
const maxLeft = 0.9 * maxQueues;
/**
 * If it has to leave more, the next comes when there are this many times as many. A sweep for each new webhook held up
 * everything else for 2 ms each time while nearly all had something pending.
 */
const growth = 1.1;

export interface WebhookQueuesOptions {
  /** Maximum concurrent attempts to one webhook from here. */
  webhookConcurrency(): number;
  /** A tenant's limit is for all servers together: each takes its share, at least one. */
  servers(): number;
}

export function createWebhookQueues({ webhookConcurrency, servers }: WebhookQueuesOptions): WebhookQueues {
  const queues = new Map<number, WebhookQueue>();
  let sweepAt = maxQueues;

  function concurrency({ maxConcurrency }: WebhookLimits): number {
    if (maxConcurrency === null) return webhookConcurrency();
    return Math.min(webhookConcurrency(), Math.max(1, Math.floor(maxConcurrency / servers())));
  }

  /**
   * Forgets queues of webhooks that have nothing to do; they are kept for a while because they know whether the webhook
   * answers.
   */
  function forgetIdle(): void {
    for (const [key, queue] of queues) {
      if (queues.size <= maxLeft) break;
      if (queue.isIdle()) queues.delete(key);
    }
    sweepAt = Math.max(maxQueues, growth * queues.size);
  }

  return {
    get: (webhookKey) => queues.get(webhookKey),
    of({ webhookKey, tenantKey }) {
      let queue = queues.get(webhookKey);
      if (!queue) {
        if (queues.size >= sweepAt) forgetIdle();
        queue = createWebhookQueue(webhookKey, tenantKey, concurrency);
        queues.set(webhookKey, queue);
      }
      return queue;
    },
    ofTenant: (tenantKey) => [...queues.values()].filter((queue) => queue.tenantKey === tenantKey),
    all: () => [...queues.values()],
    remove(queue) {
      if (queues.get(queue.webhookKey) === queue) queues.delete(queue.webhookKey);
    },
  };
}
