import { useState } from "preact/hooks";
import { call } from "../../api/client.ts";
import type { Webhook } from "../../api/types.ts";
import { toEntry } from "../../api/webhook-entry.ts";
import { changeWebhooks, inboxName, readWebhooks } from "../../api/webhooks.ts";
import { isolated } from "../../format/controls.ts";
import { withoutQuery } from "../../format/shorten.ts";
import { AttemptButton, Refusal, useAttempt } from "../../parts/attempt.tsx";
import { Button, LinkButton } from "../../parts/button.tsx";
import { Choices } from "../../parts/choices.tsx";
import { Copy } from "../../parts/copy.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Icon } from "../../parts/icon.tsx";
import { LeavingWebhook } from "../../parts/leaving-webhook.tsx";
import { Panel } from "../../parts/panel.tsx";
import { PlanLink } from "../../parts/plan-link.tsx";
import { Empty } from "../../parts/states.tsx";
import { account } from "../../session/account.ts";

/** The inbox's address, and whether events go there. */
export function Address(use: UseProps) {
  const { url, registered } = use;
  const webhook = registered.find((entry) => entry.url === url);
  return (
    <Panel title="Address">
      <div class="stack">
        <p class="inbox-url">
          <code>{url}</code>
          <Copy text={url} what="the inbox's URL" />
        </p>
        {webhook ? (
          <div class="buttons">
            <span class="badge good">
              <Icon name="check" /> In use
            </span>
            <a class="small" href="/webhooks">
              Go to webhooks
            </a>
          </div>
        ) : (
          <UseAsWebhook {...use} />
        )}
        <p class="soft small">
          A receiver built into this server, for trying things out. Only this account's deliveries reach it; it keeps
          the last 100.
        </p>
      </div>
    </Panel>
  );
}

/** The one thing to do while nothing has arrived. */
export function FirstStep({ url, registered }: Pick<UseProps, "url" | "registered">) {
  const webhook = registered.find((entry) => entry.url === url);
  if (!webhook) {
    return (
      <Empty sentence="Nothing has arrived yet. Press “Use as webhook” above to have each event delivered here." />
    );
  }
  return (
    <Empty sentence="Nothing has arrived yet.">
      <div class="buttons">
        <Button
          changes
          kind="primary"
          onClick={() => call(`/v1/tenants/webhooks/${webhook.id}/test`, { method: "POST" })}
        >
          Send a test event
        </Button>
        <LinkButton href="/keys">See how to send an event</LinkButton>
      </div>
    </Empty>
  );
}

export interface UseProps {
  url: string;
  registered: readonly Webhook[];
  onSaved(registered: Webhook[]): void;
}

/** One click where the plan has room; otherwise a second one that says what is replaced. */
function UseAsWebhook({ url, registered, onSaved }: UseProps) {
  const [isAsking, setAsking] = useState(false);
  const limit = account.value?.enforced_webhooks ?? null;

  async function use(): Promise<void> {
    // The page may not know yet what somebody else has just saved.
    const now = await readWebhooks();
    onSaved(now);
    if (limit !== null && now.length >= limit) setAsking(!now.some((webhook) => webhook.url === url));
    else onSaved(await register(url));
  }

  return (
    <>
      <div class="buttons">
        <Button changes kind="primary" onClick={use}>
          Use as webhook
        </Button>
      </div>
      {isAsking && (
        <ReplaceDialog url={url} registered={registered} onSaved={onSaved} onClose={() => setAsking(false)} />
      )}
    </>
  );
}

/** The result shows where it was asked for: the button becomes "In use". */
function register(url: string, insteadOf: string | null = null): Promise<Webhook[]> {
  return changeWebhooks((now) =>
    [...now.filter(({ id, url: other }) => id !== insteadOf && other !== url), { url, name: inboxName }].map(toEntry),
  );
}

/** The account has no room for another webhook. */
function ReplaceDialog({ url, registered, onSaved, onClose }: UseProps & { onClose(): void }) {
  const [chosen, setChosen] = useState(registered[0]?.id ?? "");
  const leaving = registered.find(({ id }) => id === chosen);
  const allowed = registered.length === 1 ? "1 webhook, which is" : `${registered.length} webhooks, all of which are`;

  const attempt = useAttempt(async () => {
    const saved = await register(url, chosen);
    onClose();
    onSaved(saved);
  });

  return (
    <Dialog title="Replace a webhook with the inbox?" onClose={onClose}>
      <p>Your account may have {allowed} in use.</p>
      {registered.length > 1 && (
        <Choices
          legend="Webhook to replace"
          name="replaced"
          options={registered.map(({ id, name, url: whole }) => {
            const other = withoutQuery(whole);
            return { value: id, text: isolated(name || other), hint: name && other };
          })}
          value={chosen}
          onChoose={setChosen}
        />
      )}
      {leaving && <LeavingWebhook key={leaving.id} webhook={leaving} when="This" />}
      <Refusal of={attempt} />
      <div class="buttons">
        <PlanLink />
        <Button onClick={onClose}>Keep it</Button>
        <AttemptButton of={attempt} kind="danger" disabled={!leaving}>
          Replace it
        </AttemptButton>
      </div>
    </Dialog>
  );
}
