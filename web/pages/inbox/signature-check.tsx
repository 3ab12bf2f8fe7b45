import { useMemo } from "preact/hooks";
import type { InboxDelivery } from "../../api/types.ts";
import { FindingSummary, Findings } from "../../parts/findings.tsx";
import { Skeleton } from "../../parts/states.tsx";
import type { VerifyKeys } from "../../verify/use-keys.ts";
import { verifyDelivery } from "../../verify/verify-delivery.ts";

/**
 * Whether the delivery is genuine, determined as its receiver would: in the browser, from headers, body and published
 * keys. Its age is the age it had on arrival.
 */
export function SignatureCheck({
  delivery: { headers, body, receivedAt },
  keys,
}: {
  delivery: InboxDelivery;
  /** Undefined while the keys are being read. */
  keys: VerifyKeys | undefined;
}) {
  const findings = useMemo(
    () =>
      keys &&
      verifyDelivery({
        headers: JSON.stringify(headers),
        body,
        jwks: keys.jwks,
        signingSecret: keys.secret.secret,
        nowMs: Date.parse(receivedAt),
      }),
    [headers, body, receivedAt, keys],
  );
  if (!findings) return <Skeleton width="180px" />;
  return (
    <details class="inbox-signature">
      <summary>
        <FindingSummary findings={findings} />
      </summary>
      <Findings findings={findings} />
    </details>
  );
}
