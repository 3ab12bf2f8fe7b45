import "./keys/keys.css";
import { useState } from "preact/hooks";
import { call } from "../api/client.ts";
import type { ApiKey } from "../api/types.ts";
import { Button } from "../parts/button.tsx";
import { FirstRequest } from "../parts/first-request.tsx";
import { PageHead } from "../parts/page.tsx";
import { Panel } from "../parts/panel.tsx";
import { Empty, Shown, SkeletonRows } from "../parts/states.tsx";
import { now } from "../parts/time.tsx";
import { useRefresh } from "../stream/live.ts";
import { useLoaded } from "../stream/load.ts";
import { KeyTable } from "./keys/key-table.tsx";
import { RotateDialog } from "./keys/rotate-dialog.tsx";

/** The keys that authorise sending events: see, copy and replace them. */
export function KeysPage() {
  const keys = useLoaded("keys", (signal) => call<ApiKey[]>("/v1/tenants/api-keys", { signal }));
  const [isRotating, setRotating] = useState(false);
  useRefresh(["account.changed"], 300, keys.reload);
  // Every accepted event used a key.
  useRefresh(["event.accepted"], 3_000, keys.reload);

  const isOver = ({ is_active, expires_at }: ApiKey) =>
    !is_active || (expires_at !== null && Date.parse(expires_at) <= now.value);
  const all = keys.data ?? [];
  const over = all.filter(isOver);
  const usable = all.filter((key) => !isOver(key));
  const newest = usable[0];

  return (
    <>
      <PageHead title="API keys">
        {newest && (
          <div class="end">
            <Button changes onClick={() => setRotating(true)} aria-haspopup="dialog">
              Rotate the key …
            </Button>
          </div>
        )}
      </PageHead>
      <div class="stack">
        <Panel title="Keys" isFlush>
          <Shown
            of={keys}
            skeleton={<SkeletonRows rows={1} />}
            isEmpty={() => usable.length === 0}
            empty={
              <Empty sentence="No key is active, so no events are accepted.">
                <Button changes kind="primary" onClick={() => setRotating(true)}>
                  Create a key …
                </Button>
              </Empty>
            }
          >
            {() => <KeyTable keys={usable} />}
          </Shown>
        </Panel>
        {newest && (
          <Panel title="The first request">
            <FirstRequest apiKey={newest.key} />
          </Panel>
        )}
        {over.length > 0 && (
          <details class="panel over">
            <summary>{over.length === 1 ? "1 expired key" : `${over.length} expired keys`}</summary>
            <KeyTable keys={over} />
          </details>
        )}
      </div>
      {isRotating && (
        <RotateDialog
          current={usable}
          onClose={() => setRotating(false)}
          onRotated={() => {
            setRotating(false);
            keys.reload();
          }}
        />
      )}
    </>
  );
}
