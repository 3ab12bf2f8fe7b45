import { useState } from "preact/hooks";
import { call } from "../../api/client.ts";
import { serverNow } from "../../api/server-time.ts";
import type { Inbox } from "../../api/types.ts";
import { Button } from "../../parts/button.tsx";
import { Area } from "../../parts/field.tsx";
import { FindingSummary, Findings } from "../../parts/findings.tsx";
import { Panel } from "../../parts/panel.tsx";
import { say } from "../../parts/said.tsx";
import type { VerifyKeys } from "../../verify/use-keys.ts";
import { type Finding, verifyDelivery } from "../../verify/verify-delivery.ts";

/** Whether a delivery that somebody received is genuine. What is pasted never leaves the page. */
export function CheckPanel({ keys: { jwks, secret } }: { keys: VerifyKeys }) {
  const [pasted, setPasted] = useState({ headers: "", body: "" });
  const [findings, setFindings] = useState<readonly Finding[] | null>(null);
  const isEmpty = pasted.headers.trim() === "";

  const check = ({ headers, body }: typeof pasted) =>
    setFindings(verifyDelivery({ headers, body, jwks, signingSecret: secret.secret, nowMs: serverNow() }));

  function change(next: typeof pasted): void {
    setPasted(next);
    setFindings(null);
  }

  async function fillIn(): Promise<void> {
    const [latest] = (await call<Inbox>("/v1/inbox", { query: { size: 1 } })).deliveries;
    if (!latest) return say("The inbox is empty. Send a test event to it first.", "bad");
    const headers = Object.entries(latest.headers).map(([name, value]) => `${name}: ${value}`);
    const next = { headers: headers.join("\n"), body: latest.body };
    setPasted(next);
    check(next);
  }

  return (
    <Panel
      title="Check a delivery"
      actions={
        <Button kind="quiet" onClick={fillIn}>
          Use the latest inbox delivery
        </Button>
      }
    >
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          check(pasted);
        }}
      >
        <div class="pasted">
          <Area
            label="Headers"
            hint="Header lines, the output of curl -v, or JSON."
            value={pasted.headers}
            onType={(headers) => change({ ...pasted, headers })}
          />
          <Area
            label="Body"
            hint="The exact bytes received, not parsed and serialized again."
            value={pasted.body}
            onType={(body) => change({ ...pasted, body })}
          />
        </div>
        <div class="buttons">
          <Button kind="primary" type="submit" disabled={isEmpty}>
            Check the delivery
          </Button>
          <p class="soft small">Checked in your browser; nothing is sent.</p>
        </div>
        <div role="status">
          {findings && (
            <div class="stack">
              <FindingSummary findings={findings} />
              <Findings findings={findings} />
            </div>
          )}
        </div>
      </form>
    </Panel>
  );
}
