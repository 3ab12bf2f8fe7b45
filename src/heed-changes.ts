import type { DeliveryControl } from "./delivery/queue/control.ts";
import type { Signers } from "./delivery/signers.ts";
import type { Change } from "./domain/change.ts";
import type { Engine } from "./engine.ts";
import type { Answers } from "./http/answers.ts";
import type { KeyRotation } from "./operator/key-rotation.ts";
import type { Hub } from "./stream/hub.ts";
import type { TestDelivery } from "./webhooks/test-delivery.ts";

export interface ChangeHeederDeps {
  deliveries: Pick<
    DeliveryControl,
    | "removeWebhooks"
    | "disableWebhook"
    | "enableWebhook"
    | "endOrder"
    | "cancelReplay"
    | "stopTenant"
    | "pauseTenant"
    | "resumeTenant"
    | "adoptPlan"
    | "throttle"
  >;
  hub: Pick<Hub, "closeTenant" | "closeSession">;
  /** Large answers in progress, which end with the account. */
  answers: Pick<Answers, "closeTenant">;
  signers: Pick<Signers, "forget">;
  testDelivery: Pick<TestDelivery, "stopTenant">;
  failingWebhooks: Pick<Engine["failingWebhooks"], "stands" | "forget" | "forgetTenant">;
  masterKey: Pick<KeyRotation, "adopt">;
}

/** What a running program does about each change, so that nothing in its memory reflects the state before it. */
export function createChangeHeeder({
  deliveries,
  hub,
  answers,
  signers,
  testDelivery,
  failingWebhooks,
  masterKey,
}: ChangeHeederDeps) {
  return function heed(change: Change): void {
    switch (change.kind) {
      case "account_deleted":
        deliveries.stopTenant(change.tenantKey);
        testDelivery.stopTenant(change.tenantKey);
        hub.closeTenant(change.tenantId);
        answers.closeTenant(change.tenantId);
        signers.forget(change.tenantKey);
        failingWebhooks.forgetTenant(change.tenantKey);
        return;
      case "account_suspended":
        deliveries.pauseTenant(change.tenantKey);
        return;
      case "account_resumed":
        deliveries.resumeTenant(change.tenantKey);
        return;
      case "plan_changed":
        deliveries.adoptPlan(change.tenantKey, change.tier);
        return;
      case "sessions_ended":
        hub.closeTenant(change.tenantId);
        return;
      case "session_ended":
        hub.closeSession(change.sessionId);
        return;
      case "webhooks_removed":
        deliveries.removeWebhooks(change.webhookKeys);
        failingWebhooks.forget(change.webhookKeys);
        return;
      case "webhook_stands":
        failingWebhooks.stands(change, change);
        if (change.as === "disabled") deliveries.disableWebhook(change.webhookKey);
        if (change.as === "well") deliveries.enableWebhook(change);
        return;
      case "webhooks_throttled":
        deliveries.throttle(change.tenantKey, change.webhooks);
        return;
      case "order_ended":
        deliveries.endOrder();
        return;
      case "replay_cancelled":
        deliveries.cancelReplay(change.tenantKey, change.replayKey);
        return;
      case "signing_changed":
        signers.forget(change.tenantKey);
        return;
      case "master_key_changed":
        masterKey.adopt();
        return;
      case "api_keys_changed":
      case "account_changed":
        // Only the store itself keeps what these concern.
        return;
      default:
        change satisfies never;
    }
  };
}
