import "./webhook.css";
import { useEffect, useState } from "preact/hooks";
import { useLocation, useRoute } from "preact-iso/router";
import type { Webhook } from "../api/types.ts";
import { readWebhooks, saveSettings } from "../api/webhooks.ts";
import { isolated } from "../format/controls.ts";
import { hostOf, withoutQuery } from "../format/shorten.ts";
import { Button, LinkButton } from "../parts/button.tsx";
import { Copy } from "../parts/copy.tsx";
import { DisabledWebhook } from "../parts/disabled-webhook.tsx";
import { Icon } from "../parts/icon.tsx";
import { PageHead } from "../parts/page.tsx";
import { Panel } from "../parts/panel.tsx";
import { say } from "../parts/said.tsx";
import { Empty, Shown, Skeleton, SkeletonRows } from "../parts/states.tsx";
import { noteUnsaved } from "../session/unsaved.ts";
import { useRefresh } from "../stream/live.ts";
import { useLoaded } from "../stream/load.ts";
import { openFrom } from "./events/left-lists.ts";
import { pairOf } from "./events/record.ts";
import { EventRow } from "./events/row.tsx";
import { FailingCard } from "./overview/failing-card.tsx";
import { deliveryKinds, OverTime, RangeChoice, useMoveOn, useStats } from "./overview/over-time.tsx";
import { readRange } from "./overview/range.ts";
import { type Replayed, useBegun } from "./overview/use-begun.ts";
import { Figures } from "./webhook/figures.tsx";
import { SettingsForm } from "./webhook/settings-form.tsx";
import { readWebhookSituation, type WebhookSituation } from "./webhook/situation.ts";
import { TestPanel } from "./webhook/test-panel.tsx";
import { Health } from "./webhooks/health.tsx";
import { StateBadge } from "./webhooks/state-badge.tsx";

const listEveryMs = 1_000;
/** Reading it takes several requests. */
const situationEveryMs = 3_000;

/** One webhook: how it is doing, why it fails, its settings, and its latest events. */
export function WebhookPage() {
  const { id = "" } = useRoute().params;
  const webhooks = useLoaded("webhooks", readWebhooks);
  useRefresh(["account.changed", "webhook.changed"], listEveryMs, webhooks.reload);
  const webhook = webhooks.data?.find((one) => one.id === id);
  const isGone = webhooks.data !== undefined && webhook === undefined;
  useEffect(() => {
    // Its changes can be saved nowhere.
    if (isGone) noteUnsaved(`/webhooks/${id}`, null);
  }, [isGone, id]);
  if (webhook) return <Registered key={id} webhook={webhook} onSaved={webhooks.put} />;
  return (
    <>
      <Way />
      <PageHead title="Webhook" />
      <Shown of={webhooks} skeleton={<SkeletonRows rows={3} />}>
        {() => (
          <Empty sentence="This webhook is not registered, or no longer is. Its events are kept.">
            <LinkButton href={`/events?webhook=${encodeURIComponent(id)}`}>See its events</LinkButton>
          </Empty>
        )}
      </Shown>
    </>
  );
}

const Way = () => (
  <p class="event-back">
    <a href="/webhooks">
      <Icon name="back" />
      Webhooks
    </a>
  </p>
);

function Registered({ webhook, onSaved }: { webhook: Webhook; onSaved(webhooks: Webhook[]): void }) {
  const { id, url, name } = webhook;
  const range = readRange({ range: "24h", ...useLocation().query });
  const situation = useLoaded(`${id} ${range.key}`, (signal) => readWebhookSituation(webhook, range, signal));
  useRefresh([...deliveryKinds, "webhook.changed", "account.changed"], situationEveryMs, situation.reload);
  useMoveOn(situation.reload);
  const stats = useStats(range, id);
  const replayed = useBegun([webhook], webhook);
  const [isTesting, setTesting] = useState(false);
  const path = `/webhooks/${id}`;

  async function pause(paused: boolean): Promise<void> {
    onSaved(await saveSettings(id, { paused }));
    say(
      paused ? "Paused. Its deliveries wait until you resume it." : "Resumed. What was waiting goes out, oldest first.",
    );
  }

  return (
    <>
      <Way />
      <PageHead title={isolated(name || hostOf(url))}>
        <div class="end buttons">
          <Button changes aria-expanded={isTesting} onClick={() => setTesting(!isTesting)}>
            Send a test event
          </Button>
          {/* One button, so that it keeps the focus. */}
          {(webhook.paused || webhook.state === "active") && (
            <Button changes kind={webhook.paused ? "primary" : "plain"} onClick={() => pause(!webhook.paused)}>
              {webhook.paused ? "Resume" : "Pause"}
            </Button>
          )}
        </div>
      </PageHead>
      <div class="stack">
        <p class="webhook-address">
          <StateBadge webhook={webhook} />
          <code>{withoutQuery(url)}</code>
          <Copy text={url} what="the URL" />
        </p>
        {webhook.state === "disabled" && (
          <DisabledWebhook webhook={webhook} onEnabled={async () => onSaved(await readWebhooks())} />
        )}
        {webhook.paused && <p class="notice warn">Its deliveries wait, and go out oldest first when you resume it.</p>}
        {isTesting && <TestPanel webhook={webhook} />}
        <RangeChoice chosen={range} urlOf={({ key }) => (key === "24h" ? path : `${path}?range=${key}`)} />
        <Shown of={situation} skeleton={<Skeleton width="100%" height="240px" />}>
          {(data) => <Doing webhook={webhook} situation={data} replayed={replayed} />}
        </Shown>
        {(situation.data || situation.error) && <OverTime of={stats} range={range} webhook={id} />}
        {replayed.others}
        <SettingsForm webhook={webhook} onSaved={onSaved} />
        {situation.data && <Latest webhook={webhook} situation={situation.data} />}
      </div>
    </>
  );
}

function Doing({
  webhook,
  situation,
  replayed,
}: {
  webhook: Webhook;
  situation: WebhookSituation;
  replayed: Replayed;
}) {
  const { from, failing, health } = situation;
  return (
    <>
      <Figures webhookId={webhook.id} situation={situation} />
      {replayed.inPlace(failing ? [failing] : []).map((one) => (
        <FailingCard key={one.id} failing={one} line={undefined} from={from} replayed={replayed} />
      ))}
      {health && (
        <Panel title="Latest deliveries">
          <Health health={health} failing={failing ?? undefined} />
        </Panel>
      )}
    </>
  );
}

function Latest({
  webhook: { id, name, url, state },
  situation: { latest },
}: {
  webhook: Webhook;
  situation: WebhookSituation;
}) {
  const { url: page } = useLocation();
  return (
    <Panel title="Its events" actions={<a href={`/events?webhook=${id}`}>See all</a>} isFlush>
      {latest.length === 0 ? (
        <Empty sentence="Nothing has been sent to it yet." />
      ) : (
        <ul class="rows">
          {latest.map((record) => (
            <EventRow
              key={pairOf(record)}
              record={record}
              webhook={isolated(name || hostOf(url))}
              isPaused={state === "paused"}
              onOpen={() => openFrom(page, record)}
            />
          ))}
        </ul>
      )}
    </Panel>
  );
}
