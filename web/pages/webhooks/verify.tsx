import "./verify.css";
import { useState } from "preact/hooks";
import { call } from "../../api/client.ts";
import { accountId } from "../../api/session.ts";
import type { Delivery, EventPage } from "../../api/types.ts";
import { Copy } from "../../parts/copy.tsx";
import { Panel } from "../../parts/panel.tsx";
import { Shown, Skeleton } from "../../parts/states.tsx";
import { server } from "../../session/server.ts";
import { useLoaded } from "../../stream/load.ts";
import { useVerifyKeys, type VerifyKeys } from "../../verify/use-keys.ts";
import { CheckPanel } from "./check-panel.tsx";
import { SigningSecret } from "./signing-secret.tsx";
import { Snippets } from "./snippets.tsx";

/** How receivers know that a delivery is ours. */
export function Verify() {
  const tenantId = accountId.value;
  const keys = useVerifyKeys(tenantId);
  return (
    <div class="stack" id="verify">
      <Panel title="Verify deliveries">
        <Shown of={keys} skeleton={<Skeleton width="100%" height="240px" />}>
          {(known) => (
            <Verification tenantId={tenantId} keys={known} onRotated={(secret) => keys.put({ ...known, secret })} />
          )}
        </Shown>
      </Panel>
      {keys.data && <CheckPanel keys={keys.data} />}
    </div>
  );
}

function Verification({
  tenantId,
  keys: { jwks, secret },
  onRotated,
}: {
  tenantId: string;
  keys: VerifyKeys;
  onRotated(secret: VerifyKeys["secret"]): void;
}) {
  const [isShown, setShown] = useState(false);
  const jwksUrl = `${server.value?.baseUrl ?? location.origin}/v1/tenants/${tenantId}/jwks.json`;
  const keyId = useSigningKeyId(jwks);
  return (
    <div class="stack">
      <p>
        Each delivery is signed twice: with a key pair, whose public half is in a public key set, and with a secret that
        you share with your receivers. Check one of the two before you trust a request.
      </p>
      <dl class="facts verify-facts">
        <dt>Key set</dt>
        <dd>
          <span>
            <code>{jwksUrl}</code>
            <Copy text={jwksUrl} what="the address of the key set" />
          </span>
        </dd>
        {jwks.keys.map(({ kid, x }) => (
          <>
            <dt>{kid === keyId ? "Public key" : "Another public key"}</dt>
            <dd>
              <span>
                <code>{x}</code>
                <Copy text={x} what={`the public key ${kid}`} />
              </span>
              <small class="soft">
                Ed25519, <code>{kid}</code>
              </small>
            </dd>
          </>
        ))}
        <dt>Signing secret</dt>
        <dd>
          <SigningSecret secret={secret} isShown={isShown} onToggle={() => setShown(!isShown)} onRotated={onRotated} />
        </dd>
      </dl>
      <Snippets values={{ jwksUrl, publicKeys: jwks.keys, keyId, ...(isShown && { signingSecret: secret.secret }) }} />
    </div>
  );
}

/** A key is published before it signs, so when there are several, only a delivery tells which one is signing now. */
function useSigningKeyId({ keys }: VerifyKeys["jwks"]): string {
  const [newest, ...others] = keys;
  const named = useLoaded(keys.map(({ kid }) => kid).join(), async (signal) => {
    if (others.length === 0) return null;
    const { events } = await call<EventPage>("/v1/events", { query: { size: 1, payload: false }, signal });
    const [latest] = events;
    if (!latest) return null;
    const { headers } = await call<Delivery>(`/v1/events/${latest.eventId}/delivery`, { signal });
    return headers["Service-Key-Id"] ?? null;
  });
  return named.data ?? newest?.kid ?? "";
}
