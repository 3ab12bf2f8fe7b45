import "./webhooks.css";
import { useEffect } from "preact/hooks";
import { call } from "../api/client.ts";
import type { Inbox, WebhookHealth } from "../api/types.ts";
import { readWebhooks } from "../api/webhooks.ts";
import { PageHead } from "../parts/page.tsx";
import { Panel } from "../parts/panel.tsx";
import { PlanLink } from "../parts/plan-link.tsx";
import { Shown } from "../parts/states.tsx";
import { account } from "../session/account.ts";
import { sells } from "../session/server.ts";
import { useRefresh } from "../stream/live.ts";
import { useLoaded } from "../stream/load.ts";
import { CardSkeleton } from "./webhooks/card.tsx";
import { WebhookList } from "./webhooks/list.tsx";
import { readFailing } from "./webhooks/read-failing.ts";
import { Verify } from "./webhooks/verify.tsx";

const healthEveryMs = 1_000;
const listEveryMs = 1_000;
/** Reading it takes several requests. */
const failingEveryMs = 3_000;
/** What changes how deliveries went. */
const deliveryKinds = ["account.changed", "webhook.changed", "delivery.attempted", "deliveries.ended"] as const;

/** Where events go, how well that works, and how a receiver knows that they are genuine. */
export function WebhooksPage() {
  const webhooks = useLoaded("webhooks", readWebhooks);
  const health = useLoaded("health", (signal) => call<WebhookHealth[]>("/v1/tenants/webhooks/health", { signal }));
  const inbox = useLoaded("inbox", (signal) => call<Inbox>("/v1/inbox", { query: { size: 1 }, signal }));
  const failing = useLoaded("failing", readFailing);
  useRefresh(["account.changed", "webhook.changed"], listEveryMs, webhooks.reload);
  useRefresh(deliveryKinds, failingEveryMs, failing.reload);
  useRefresh(deliveryKinds, healthEveryMs, health.reload);

  // The panel exists only once its data has arrived, which is after the browser has looked for it.
  useEffect(() => {
    if (location.hash === "#verify" && webhooks.data) document.getElementById("verify")?.scrollIntoView();
  }, [webhooks.data === undefined]);

  return (
    <>
      <PageHead title="Webhooks">
        <div class="end">
          <a href="#verify">Verify deliveries</a>
        </div>
      </PageHead>
      <div class="stack">
        <Panel title="Registered webhooks" actions={webhooks.data && <Limit used={webhooks.data.length} />} isFlush>
          <Shown of={webhooks} skeleton={<CardSkeleton />}>
            {(registered) => (
              <WebhookList
                registered={registered}
                health={health.data ?? []}
                failing={failing.data ?? []}
                inboxUrl={inbox.data?.url ?? null}
                onSaved={webhooks.put}
              />
            )}
          </Shown>
        </Panel>
        <Verify />
      </div>
    </>
  );
}

/** "1 of 1 on the free plan" */
function Limit({ used }: { used: number }) {
  const who = account.value;
  if (!who) return null;
  const isPending = who.status === "pending_verification";
  const plan = isPending ? " until your account is active" : sells() ? ` on the ${who.tier} plan` : "";
  return (
    <p class="small soft">
      {used} of {who.enforced_webhooks}
      {plan} · <PlanLink />
    </p>
  );
}
