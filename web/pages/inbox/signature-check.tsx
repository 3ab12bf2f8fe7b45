import { useMemo } from "preact/hooks";
import type { InboxDelivery } from "../../api/types.ts";
import { FindingSummary, Findings } from "../../parts/findings.tsx";
import { Skeleton } from "../../parts/states.tsx";
import type { VerifyKeys } from "../../verify/use-keys.ts";
import { verifyDelivery } from "../../verify/verify-delivery.ts";

/**
 * Whether the delivery is genuine, as its receiver would find out: in the browser, from headers, body and published keys.
 * Its age is that at which it arrived.
 */
export function SignatureCheck({
  delivery: { headers, body, receivedAt },
  keys,
}: {
  delivery: InboxDelivery;
  /** Undefined while they are being read. */
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
