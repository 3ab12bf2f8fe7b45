import "./welcome/welcome.css";
import { call } from "../api/client.ts";
import { accountId } from "../api/session.ts";
import type { ApiKey, EventPage, Inbox, Webhook } from "../api/types.ts";
import { takeInbox } from "../api/webhooks.ts";
import { shortenUrl, withoutQuery } from "../format/shorten.ts";
import { AttemptButton, Refusal, useAttempt } from "../parts/attempt.tsx";
import { Button, LinkButton } from "../parts/button.tsx";
import { Code } from "../parts/code.tsx";
import { FirstRequest, sampleRequest } from "../parts/first-request.tsx";
import { PageHead } from "../parts/page.tsx";
import { Panel } from "../parts/panel.tsx";
import { Shown, Skeleton } from "../parts/states.tsx";
import { account } from "../session/account.ts";
import { server } from "../session/server.ts";
import { useLoaded } from "../stream/load.ts";
import { Arrival } from "./welcome/arrival.tsx";

interface SetUp {
  /** Null when no key is active. */
  readonly apiKey: string | null;
  readonly webhooks: readonly { url: string }[];
  readonly inboxUrl: string;
}

/** The first visit: one request, and its delivery as it happens. */
export function WelcomePage() {
  const setUp = useLoaded("welcome", setUpFirstVisit);
  const isPending = account.value?.enforced_tier === null;
  return (
    <>
      <PageHead title="Send your first event" />
      {isPending && <p class="notice warn welcome-notice">Events are accepted once your account is active.</p>}
      <Shown
        of={setUp}
        skeleton={
          <div class="stack">
            <Skeleton width="100%" height="180px" />
            <Skeleton width="100%" height="120px" />
          </div>
        }
      >
        {({ apiKey, webhooks, inboxUrl }) => (
          <div class="stack">
            <Target webhooks={webhooks} inboxUrl={inboxUrl} onTaken={setUp.reload} />
            <Panel title="1. Send an event">
              {apiKey === null ? (
                <p>
                  No key is active. <a href="/keys">Create a key</a>
                </p>
              ) : (
                <Send apiKey={apiKey} />
              )}
            </Panel>
            <Panel title="2. Watch it arrive">
              <Arrival inboxUrl={inboxUrl} />
            </Panel>
            <Panel title="3. Next steps">
              <Onward />
            </Panel>
          </div>
        )}
      </Shown>
    </>
  );
}

/**
 * On the first visit the inbox becomes the webhook, so that there is something to see without any setup. Later an empty
 * list is never filled: it may be empty on purpose.
 */
async function setUpFirstVisit(signal: AbortSignal): Promise<SetUp> {
  const [keys, webhooks, inbox, events] = await Promise.all([
    call<ApiKey[]>("/v1/tenants/api-keys", { signal }),
    call<Webhook[]>("/v1/tenants/webhooks", { signal }),
    call<Inbox>("/v1/inbox", { query: { size: 1 }, signal }),
    call<EventPage>("/v1/events", { query: { size: 1, payload: false }, signal }),
  ]);
  const apiKey = keys.find(({ is_active }) => is_active)?.key ?? null;
  const isFirst = webhooks.length === 0 && events.total === 0;
  if (isFirst) await takeInbox(inbox.url);
  return { apiKey, inboxUrl: inbox.url, webhooks: isFirst ? [inbox] : webhooks };
}

const longestUrl = 80;

function Target({
  webhooks,
  inboxUrl,
  onTaken,
}: Pick<SetUp, "webhooks" | "inboxUrl"> & {
  onTaken(): void;
}) {
  if (webhooks.length === 0) {
    return (
      <div class="notice warn welcome-notice">
        <p>No webhook is registered, so events are stored, but not delivered.</p>
        <Button
          changes
          onClick={async () => {
            await takeInbox(inboxUrl);
            onTaken();
          }}
        >
          Use the inbox as a webhook
        </Button>
      </div>
    );
  }
  if (webhooks.every(({ url }) => url === inboxUrl)) {
    return (
      <p>
        Your webhook, for now, is the <a href="/inbox">inbox</a> built into this server: deliveries arrive there, and
        there is nothing to set up.
      </p>
    );
  }
  return (
    <p>
      Events are delivered to {webhooks.length === 1 ? "your webhook" : `your ${webhooks.length} webhooks`}:{" "}
      {webhooks.map(({ url }, i) => (
        <span key={url}>
          {i > 0 && ", "}
          {url === inboxUrl ? (
            <a href="/inbox">the inbox</a>
          ) : (
            <code class="breaks" title={withoutQuery(url)}>
              {shortenUrl(url, longestUrl)}
            </code>
          )}
        </span>
      ))}
      .
    </p>
  );
}

/** Nobody else can reach a server that listens on the loopback interface (RFC 6761, section 6.3; RFC 1122, 3.2.1.3). */
function isLocal(): boolean {
  const { hostname } = new URL(baseUrl());
  return hostname === "[::1]" || /^(127\.|(.*\.)?localhost$)/.test(hostname);
}

const baseUrl = () => server.value?.baseUrl ?? location.origin;

function Send({ apiKey }: { apiKey: string }) {
  const attempt = useAttempt(async () => {
    await call("/v1/ingest", { method: "POST", text: sampleRequest, credential: apiKey });
  });
  return (
    <div class="stack">
      <p>Paste this into a shell on {isLocal() ? "this machine" : "any machine that can reach this server"}:</p>
      <FirstRequest apiKey={apiKey}>
        <AttemptButton of={attempt}>Send it from here</AttemptButton>
      </FirstRequest>
      <Refusal of={attempt} />
    </div>
  );
}

function Onward() {
  return (
    <div class="stack">
      <p>
        Forward each delivery to a program on your laptop. The command asks for your password and changes nothing here:
      </p>
      <Code
        text={`postrider listen --server '${baseUrl()}' --login ${accountId.value} \\\n  --forward-to http://localhost:3000/hook`}
        what="the command that forwards to your laptop"
        isWrapped
      />
      <div class="buttons">
        <LinkButton href="/webhooks">Use your own webhook</LinkButton>
        <LinkButton href="/inbox">Open the inbox</LinkButton>
        <LinkButton href="/">Go to the overview</LinkButton>
      </div>
    </div>
  );
}
