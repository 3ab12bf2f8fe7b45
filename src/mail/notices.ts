import type { FailedCharge } from "../billing/charging.ts";
import type { OwnNews } from "../delivery/own-events.ts";
import { canGetMail, type MailFact, type MailKind } from "../domain/mail.ts";
import type { Tenant } from "../domain/tenant.ts";
import type { Webhook } from "../domain/webhook.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import type { Log } from "../lib/log.ts";
import type { Store } from "../store/store.ts";

/** What people are told by mail. None of these calls waits for anything, or fails. */
export interface Notices {
  webhook(news: OwnNews): void;
  chargeFailed(tenant: Tenant, charge: FailedCharge): void;
  operator(kind: MailKind, fact: MailFact): void;
  /** Resolves when all of them are in the outbox. */
  flush(): Promise<void>;
}

export interface NoticeDeps {
  store: Pick<Store, "queueMail" | "findTenant" | "webhooks">;
  clock: Pick<Clock, "now">;
  log: Log;
  /** Addresses of the operator. */
  operators: readonly string[];
  /** Called when there is something in the outbox. */
  wake(): void;
}

export function createNotices({ store, clock, log, operators, wake }: NoticeDeps): Notices {
  const underWay = new Set<Promise<void>>();

  function inBackground(kind: MailKind, work: () => Promise<void>): void {
    const done = work()
      .catch((error: unknown) => log.write("warn", "mail.not_queued", { kind, error: messageOf(error) }))
      .finally(() => underWay.delete(done));
    underWay.add(done);
  }

  async function queue(kind: MailKind, to: string, fact: MailFact): Promise<void> {
    if (!canGetMail(to)) return;
    const isQueued = await store.queueMail({ kind, recipient: to.toLowerCase(), fact }, clock.now());
    if (isQueued) wake();
    else log.write("warn", "mail.not_queued", { kind, error: "the outbox is full" });
  }

  const about = ({ id, name }: Tenant) => ({ tenantId: id, tenantName: name });
  /** Only the host of its URL: the rest may hold a token, and nobody has verified who reads the mail. */
  const aboutWebhook = ({ id, name, url }: Webhook) => ({
    webhookId: id,
    webhookName: name,
    webhookHost: new URL(url).host,
  });

  return {
    webhook({ type, about: { tenantKey, webhookKey }, tenantId, fields }) {
      const kind = type === "postrider.webhook.failing" ? "webhook.failing" : "webhook.disabled";
      if (kind !== type.slice("postrider.".length)) return;
      inBackground(kind, async () => {
        const [tenant, webhooks] = await Promise.all([store.findTenant(tenantId), store.webhooks(tenantKey)]);
        const webhook = webhooks.find(({ key }) => key === webhookKey);
        if (!tenant || !webhook) return;
        const failingSince = Date.parse(String(fields.failing_since));
        const rest =
          kind === "webhook.disabled"
            ? { disabledAs: String(fields.disabled_reason) }
            : { disablesAt: fields.disables_at === null ? null : Date.parse(String(fields.disables_at)) };
        await queue(kind, tenant.email, { ...about(tenant), ...aboutWebhook(webhook), failingSince, ...rest });
      });
    },
    chargeFailed(tenant, { isSuspended, ...charge }) {
      const fact = { ...about(tenant), ...charge, isSuspended: isSuspended ? 1 : 0 };
      inBackground("charge.failed", () => queue("charge.failed", tenant.email, fact));
    },
    operator(kind, fact) {
      for (const to of operators) inBackground(kind, () => queue(kind, to, fact));
    },
    async flush() {
      await Promise.all(underWay);
    },
  };
}
