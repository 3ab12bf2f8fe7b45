import { type Tenant, type Tier, tierInForce } from "./tenant.ts";
import { limitsOf, type Throttle, type Webhook } from "./webhook.ts";

/**
 * Something that a running program must act on, because what it keeps in memory follows from the state before: queues,
 * streams, answers under way, keys. A change says everything needed for that, and no secret.
 */
export type Change =
  | (ChangedTenant & ChangeOfTenant)
  | { readonly kind: "session_ended"; readonly sessionId: string }
  /** A rotation has begun or ended: the store knows which keys there are. */
  | { readonly kind: "master_key_changed" };

interface ChangedTenant {
  readonly tenantKey: number;
  readonly tenantId: string;
}

type ChangeOfTenant =
  | { readonly kind: "account_deleted" }
  /** By the operator, like the next one. */
  | { readonly kind: "account_suspended" }
  | { readonly kind: "account_resumed" }
  /** `tier`: the one whose limits are in force from now on. */
  | { readonly kind: "plan_changed"; readonly tier: Tier }
  /** All of them; a new password ends them too. */
  | { readonly kind: "sessions_ended" }
  /** Anything else about the account. */
  | { readonly kind: "account_changed" }
  | { readonly kind: "webhooks_removed"; readonly webhookKeys: readonly number[] }
  /** Their queues follow these settings from now on, or their deliveries carry other headers. */
  | { readonly kind: "webhooks_throttled"; readonly webhooks: readonly ThrottledWebhook[] }
  /** What is known about its failures has changed; `disabled`: nothing goes out to it until it is `well`. */
  | ({ readonly kind: "webhook_stands"; readonly webhookKey: number } & WebhookStands)
  /** Webhooks of the account are no longer ordered: what is held back for them is to go out. */
  | { readonly kind: "order_ended" }
  /** Nothing more of this replay goes out. */
  | { readonly kind: "replay_cancelled"; readonly replayKey: number }
  | { readonly kind: "api_keys_changed" }
  /** A key or a secret that deliveries are signed with. */
  | { readonly kind: "signing_changed" };

/** How a webhook stood at one moment. A process that hears of it later may know more by then. */
export interface WebhookStands {
  readonly as: "well" | "failing" | "disabled";
  /** Of a failing one: since when. */
  readonly at: number;
}

/** The settings that the queue of a webhook follows from now on. */
export interface ThrottledWebhook extends Throttle {
  readonly webhookKey: number;
  /** It was paused until now. */
  readonly resumes: boolean;
}

/** A webhook and what it was before. */
export interface ChangedWebhook {
  readonly before: Webhook;
  readonly after: Webhook;
}

/** The queues of these webhooks follow new settings from now on. */
export const throttled = (webhooks: readonly ChangedWebhook[]) =>
  ({
    kind: "webhooks_throttled",
    webhooks: webhooks.map(({ before, after }) => ({
      webhookKey: after.key,
      paused: after.paused,
      resumes: before.paused && !after.paused,
      ...limitsOf(after),
    })),
  }) as const;

/** Says whose change it is. */
export const changed = ({ key, id }: Pick<Tenant, "key" | "id">): ChangedTenant => ({ tenantKey: key, tenantId: id });

/** The changes that follow from an account's new state; at least one. */
export function changesOf(before: Tenant, after: Tenant): Change[] {
  const tenant = changed(after);
  const tier = tierInForce(after);
  const changes: Change[] = [];
  if (before.operatorSuspendedAt !== after.operatorSuspendedAt) {
    changes.push({ ...tenant, kind: after.operatorSuspendedAt === null ? "account_resumed" : "account_suspended" });
  }
  if (tierInForce(before) !== tier) changes.push({ ...tenant, kind: "plan_changed", tier });
  if (before.sessionVersion !== after.sessionVersion) changes.push({ ...tenant, kind: "sessions_ended" });
  return changes.length > 0 ? changes : [{ ...tenant, kind: "account_changed" }];
}
