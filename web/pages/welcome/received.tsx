import { useMemo } from "preact/hooks";
import { readKeySet } from "../../api/key-set.ts";
import { accountId } from "../../api/session.ts";
import type { InboxDelivery, JwkSet } from "../../api/types.ts";
import { Code } from "../../parts/code.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Time } from "../../parts/time.tsx";
import { useLoaded } from "../../stream/load.ts";
import { verifyDelivery } from "../../verify/verify-delivery.ts";

/** What the inbox received, and whether it is genuine: the same check that a receiver makes, made here. */
export function Received({ delivery }: { delivery: InboxDelivery }) {
  const id = accountId.value;
  const keys = useLoaded(`keys of ${id}`, (signal) => readKeySet(id, signal));
  return (
    <>
      <li class="is-new">
        <span class="state delivered">
          <Icon name="check" />
          Received
        </span>
        <span>by the inbox</span>
        <Time at={delivery.receivedAt} />
        <Code text={delivery.body} what="the body, as it arrived" isWrapped />
      </li>
      {keys.data && <Signature of={delivery} keys={keys.data} />}
    </>
  );
}

function Signature({ of: { id, headers, body, receivedAt }, keys }: { of: InboxDelivery; keys: JwkSet }) {
  const found = useMemo(
    () => verifyDelivery({ headers: JSON.stringify(headers), body, jwks: keys, nowMs: Date.parse(receivedAt) })[0],
    [id, keys],
  );
  const isGenuine = found?.verdict === "valid";
  return (
    <li class="is-new">
      <span class={`state ${isGenuine ? "delivered" : "failed"}`}>
        <Icon name={isGenuine ? "check" : "cross"} />
        {isGenuine ? "Genuine" : "Not genuine"}
      </span>
      <span>{isGenuine ? "The signature verifies." : found?.message}</span>
    </li>
  );
}
