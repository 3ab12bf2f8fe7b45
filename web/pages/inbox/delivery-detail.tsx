import { useState } from "preact/hooks";
import type { InboxDelivery } from "../../api/types.ts";
import { outcomeOf } from "../../format/outcome.ts";
import { exactTimeWithZone } from "../../format/time.ts";
import { Answered } from "../../parts/answered.tsx";
import { Copy } from "../../parts/copy.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Id } from "../../parts/id.tsx";
import { Json } from "../../parts/json.tsx";
import { Time } from "../../parts/time.tsx";
import type { VerifyKeys } from "../../verify/use-keys.ts";
import { SignatureCheck } from "./signature-check.tsx";

/** One delivery: how it arrived, whether it is ours, and what it says. */
export function DeliveryDetail({
  delivery,
  keys,
  backTo,
}: {
  delivery: InboxDelivery;
  keys: VerifyKeys | undefined;
  backTo: string;
}) {
  const { eventId, receivedAt, headers, body, answeredStatus, isTest } = delivery;
  const [isFormatted, setFormatted] = useState(false);
  const { state, rule } = outcomeOf(answeredStatus);
  return (
    <article class="arrived" aria-label={`Delivery of ${eventId}`}>
      <a class="back" href={backTo}>
        <Icon name="back" /> Back to the inbox
      </a>
      <div class="line">
        <h2>
          <Id value={eventId} what="the event id" />
        </h2>
        <span class="soft small">
          <Time at={receivedAt} /> · {exactTimeWithZone(Date.parse(receivedAt))}
        </span>
        {isTest ? (
          <span class="badge" title="Sent by “Send a test event”. It is stored nowhere else.">
            test event
          </span>
        ) : (
          <a class="end" href={`/events/${eventId}`}>
            See the event
          </a>
        )}
      </div>
      <SignatureCheck delivery={delivery} keys={keys} />
      <p class="line small">
        <Answered
          status={answeredStatus}
          word={answeredStatus === null ? "No response in time" : `Responded with ${answeredStatus}`}
        />
        <span class="soft">{isTest && state === "PENDING" ? "Tests are never retried." : rule}</span>
      </p>
      <section>
        <h3>Headers</h3>
        <table class="inbox-headers">
          <tbody>
            {Object.entries(headers).map(([name, value]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{value}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <section>
        <div class="line">
          <h3>Body</h3>
          <div class="segments end">
            <button type="button" aria-pressed={!isFormatted} onClick={() => setFormatted(false)}>
              As received
            </button>
            <button type="button" aria-pressed={isFormatted} onClick={() => setFormatted(true)}>
              Formatted
            </button>
          </div>
          <Copy text={body} what="the body" />
        </div>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
        <pre class="body" tabIndex={0}>
          <Json text={body} isFormatted={isFormatted} />
        </pre>
      </section>
    </article>
  );
}
