import "./inbox.css";
import { useRef, useState } from "preact/hooks";
import { useLocation, useRoute } from "preact-iso/router";
import { call } from "../api/client.ts";
import { accountId } from "../api/session.ts";
import type { Inbox, InboxDelivery } from "../api/types.ts";
import { readWebhooks } from "../api/webhooks.ts";
import { count } from "../format/number.ts";
import { AttemptButton, Refusal, useAttempt } from "../parts/attempt.tsx";
import { Button } from "../parts/button.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { useShortcuts } from "../parts/keyboard.tsx";
import { PageHead } from "../parts/page.tsx";
import { Panel } from "../parts/panel.tsx";
import { say } from "../parts/said.tsx";
import { Empty, Shown, Skeleton, SkeletonRows } from "../parts/states.tsx";
import { useRefresh } from "../stream/live.ts";
import { useLoaded } from "../stream/load.ts";
import { useVerifyKeys } from "../verify/use-keys.ts";
import { Address, FirstStep } from "./inbox/address.tsx";
import { AnswerPanel } from "./inbox/answer.tsx";
import { DeliveryDetail } from "./inbox/delivery-detail.tsx";
import { DeliveryList } from "./inbox/delivery-list.tsx";
import { useInbox } from "./inbox/use-inbox.ts";

const listEveryMs = 1_000;

/** The account's own receiver: deliveries as they arrive, and how it responds. */
export function InboxPage() {
  const { params } = useRoute();
  const inbox = useInbox();
  return (
    <>
      <PageHead title="Inbox" />
      <Shown of={inbox} skeleton={<InboxSkeleton />}>
        {(data) => (
          <>
            {params.token !== undefined && !data.url.endsWith(`/${params.token}`) && (
              <p class="bar">The address that you opened is not this account's inbox. This one is.</p>
            )}
            <Open inbox={data} onChange={inbox.put} />
          </>
        )}
      </Shown>
    </>
  );
}

function Open({ inbox, onChange }: { inbox: Inbox; onChange(inbox: Inbox): void }) {
  const { path, query, route } = useLocation();
  const { url, answer, deliveries, total } = inbox;
  const keys = useVerifyKeys(accountId.value);
  const webhooks = useLoaded("webhooks", readWebhooks);
  useRefresh(["account.changed"], listEveryMs, webhooks.reload);
  // Where there is room next to the list, the delivery that was newest initially is open, and stays open.
  const first = useRef<string | undefined>(undefined);
  first.current ??= deliveries[0]?.id;
  const wanted = query.delivery ?? first.current;
  const isPicked = query.delivery !== undefined;
  // A delivery stays open while it is being read, even after newer ones have pushed it out.
  const read = useRef<InboxDelivery | undefined>(undefined);
  const shown = deliveries.find(({ id }) => id === wanted) ?? (read.current?.id === wanted ? read.current : undefined);
  read.current = shown;
  const hrefOf = (id: string) => `${path}?delivery=${id}`;

  function move(step: 1 | -1): void {
    const at = deliveries.findIndex(({ id }) => id === shown?.id);
    const next = deliveries[at + step];
    if (next) route(hrefOf(next.id), isPicked);
  }
  useShortcuts([
    { keys: "j", does: "Next delivery", run: () => move(1) },
    { keys: "k", does: "Previous delivery", run: () => move(-1) },
    { keys: "Escape", does: "Back to the list", run: () => isPicked && route(path) },
  ]);

  return (
    <div class={`inbox ${isPicked ? "is-picked" : ""}`}>
      <div class="inbox-top">
        <Shown of={webhooks} skeleton={<PanelSkeleton title="Address" />}>
          {(registered) => <Address url={url} registered={registered} onSaved={webhooks.put} />}
        </Shown>
        <AnswerPanel answer={answer} onSaved={(saved) => onChange({ ...inbox, answer: saved })} />
      </div>
      <div class="inbox-main">
        <Panel
          title={total === 0 ? "Deliveries" : `Deliveries · ${count(total)}`}
          actions={total > 0 && <EmptyButton onEmptied={() => onChange({ ...inbox, deliveries: [], total: 0 })} />}
          isFlush
        >
          {deliveries.length === 0 ? (
            webhooks.data && <FirstStep url={url} registered={webhooks.data} />
          ) : (
            <DeliveryList deliveries={deliveries} openId={shown?.id ?? null} hrefOf={hrefOf} />
          )}
        </Panel>
        {(shown || isPicked) && (
          <section class="panel inbox-detail" aria-label="The delivery">
            {shown ? (
              <DeliveryDetail key={shown.id} delivery={shown} keys={keys.data} backTo={path} />
            ) : (
              <Empty sentence="This delivery is no longer here. The inbox keeps the last 100, until you empty it or retention removes them.">
                <a href={path}>Back to the inbox</a>
              </Empty>
            )}
          </section>
        )}
      </div>
    </div>
  );
}

function EmptyButton({ onEmptied }: { onEmptied(): void }) {
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      <Button changes kind="quiet" onClick={() => setAsking(true)}>
        Empty the inbox
      </Button>
      {isAsking && <EmptyDialog onClose={() => setAsking(false)} onEmptied={onEmptied} />}
    </>
  );
}

function EmptyDialog({ onClose, onEmptied }: { onClose(): void; onEmptied(): void }) {
  const attempt = useAttempt(async () => {
    await call("/v1/inbox/deliveries", { method: "DELETE" });
    onClose();
    onEmptied();
    say("The inbox is empty.");
  });
  return (
    <Dialog title="Empty the inbox?" onClose={onClose}>
      <p>This deletes what the inbox received. The outcome of each delivery stays with its event.</p>
      <Refusal of={attempt} />
      <div class="buttons">
        <Button onClick={onClose}>Keep them</Button>
        <AttemptButton of={attempt} kind="danger">
          Empty it
        </AttemptButton>
      </div>
    </Dialog>
  );
}

const InboxSkeleton = () => (
  <div class="inbox">
    <div class="inbox-top">
      <PanelSkeleton title="Address" />
      <PanelSkeleton title="Respond with" />
    </div>
    <Panel title="Deliveries" isFlush>
      <SkeletonRows rows={6} />
    </Panel>
  </div>
);

const PanelSkeleton = ({ title }: { title: string }) => (
  <Panel title={title}>
    <div class="stack">
      <Skeleton width="80%" />
      <Skeleton width="140px" height="32px" />
    </div>
  </Panel>
);
