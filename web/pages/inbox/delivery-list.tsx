import type { InboxDelivery } from "../../api/types.ts";
import { bytes } from "../../format/number.ts";
import { shortenId } from "../../format/shorten.ts";
import { Answered } from "../../parts/answered.tsx";
import { Button } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Time } from "../../parts/time.tsx";
import { useHeld } from "./use-held.ts";

/** What has arrived, newest first. */
export function DeliveryList({
  deliveries,
  openId,
  hrefOf,
}: {
  deliveries: readonly InboxDelivery[];
  openId: string | null;
  hrefOf(id: string): string;
}) {
  const { list, shown, held, isNew, release } = useHeld(deliveries);
  return (
    <div class="arrivals">
      {held > 0 && (
        <div class="inbox-pill">
          <Button
            kind="primary"
            onClick={() => {
              release();
              scrollTo({ top: 0 });
            }}
          >
            <Icon name="up" /> {held < deliveries.length ? held : `${held} or more`} new
          </Button>
        </div>
      )}
      <ul class="rows" ref={list}>
        {shown.map((delivery) => (
          <Row
            key={delivery.id}
            delivery={delivery}
            href={hrefOf(delivery.id)}
            isOpen={delivery.id === openId}
            isNew={isNew(delivery)}
          />
        ))}
      </ul>
    </div>
  );
}

function Row({
  delivery: { eventId, receivedAt, body, answeredStatus, isTest },
  href,
  isOpen,
  isNew,
}: {
  delivery: InboxDelivery;
  href: string;
  isOpen: boolean;
  isNew: boolean;
}) {
  return (
    // Once shown, it must not fade in again, as browsers would do when the layout changes.
    <li class={isNew ? "is-new" : ""} onAnimationEnd={({ currentTarget }) => currentTarget.classList.remove("is-new")}>
      <a class={`row inbox-row ${isOpen ? "is-open" : ""}`} href={href} {...(isOpen && { "aria-current": "true" })}>
        <span class="answered">
          <Answered status={answeredStatus} />
        </span>
        <span class="mono">{shortenId(eventId)}</span>
        {isTest && <span class="badge">test</span>}
        <span class="soft small what">{bytes(new Blob([body]).size)}</span>
        <span class="soft small end">
          <Time at={receivedAt} />
        </span>
      </a>
    </li>
  );
}
