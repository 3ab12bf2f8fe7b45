import type { Account } from "../client/account.ts";
import { refusalOf } from "../client/answer.ts";
import { readWebhookSettings } from "../client/webhook.ts";
import type { EventRow } from "./api.ts";

/** What a delivery that has not ended waits for. */

/** What may hold deliveries back besides their own times. */
export interface Holds {
  /** The operator has paused all deliveries of the server. */
  readonly isServerPaused: boolean;
  readonly isAccountSuspended: boolean;
  /** URLs of webhooks that are paused. */
  readonly pausedWebhooks: readonly string[];
}

/** An attempt ends within 10 s (rules, section 8); the rest is for one that starts or is reported late. */
const underWayMs = 15_000;

/** Of a record that is `PENDING`. A time in the past is when it was due, not when an attempt will be made (rules, section 7). */
export function waitWords(record: EventRow, holds: Holds, now: number): string {
  const { heldBack, heldBackBy = "an earlier event", nextAttemptAt, targetWebhook } = record;
  if (heldBack) return `waits for ${heldBackBy} with the same ordering key`;
  if (holds.isServerPaused) return "waits: the operator has paused deliveries";
  if (holds.isAccountSuspended) return "waits: the operator has suspended the account";
  if (holds.pausedWebhooks.includes(targetWebhook)) return "waits: the webhook is paused";
  const left = nextAttemptAt === null ? 0 : Date.parse(nextAttemptAt) - now;
  if (left > 0) return `next attempt ${nextAttemptAt}`;
  if (left >= -underWayMs) return "under way";
  return `waits for its turn since ${nextAttemptAt}: earlier deliveries are unanswered, or a rate limit applies`;
}

/** @throws StartupError */
export async function readHolds(account: Pick<Account, "call" | "url">): Promise<Holds> {
  const read = async (path: string) => {
    const reply = await account.call("GET", path);
    if (reply.status !== 200) throw refusalOf(account, reply);
    return reply.json;
  };
  const [about, me, { webhooks }] = await Promise.all([
    read("/v1/about") as Promise<{ paused: readonly string[] }>,
    // Optional: a server of the release before does not say.
    read("/v1/tenants/me") as Promise<{ suspended_by?: readonly string[] }>,
    readWebhookSettings(account),
  ]);
  return {
    isServerPaused: about.paused.includes("deliveries"),
    isAccountSuspended: me.suspended_by?.includes("operator") ?? false,
    pausedWebhooks: webhooks.filter(({ state }) => state === "paused").map(({ url }) => url),
  };
}
