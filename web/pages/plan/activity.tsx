import { useState } from "preact/hooks";
import { call } from "../../api/client.ts";
import type { AuditPage } from "../../api/types.ts";
import { showControls } from "../../format/controls.ts";
import { Button } from "../../parts/button.tsx";
import { Panel } from "../../parts/panel.tsx";
import { Shown, SkeletonRows } from "../../parts/states.tsx";
import { Time } from "../../parts/time.tsx";
import { useRefresh } from "../../stream/live.ts";
import { useLoaded } from "../../stream/load.ts";
import { actionWords } from "./activity-words.ts";

const step = 10;

/** Who did what with the account, newest first. */
export function Activity() {
  const [size, setSize] = useState(step);
  const audit = useLoaded(`audit ${size}`, (signal) => call<AuditPage>("/v1/audit", { query: { size }, signal }));
  useRefresh(["account.changed"], 1_000, audit.reload);
  return (
    <Panel title="Activity" isFlush>
      <Shown of={audit} skeleton={<SkeletonRows rows={3} />}>
        {({ entries, total }) => (
          <>
            <ul class="rows">
              {entries.map(({ action, by, address, times, at, last_at, detail }) => (
                <li key={at + action + address} class="row">
                  <span class="activity">
                    {actionWords(action)}
                    {times > 1 && ` ×${times}`}{" "}
                    <span class="soft small">
                      by {by === "stranger" ? "a" : "the"} {by}
                      {address && ` from ${address}`}
                      {Object.entries(detail).map(([name, value]) => ` · ${name}: ${showControls(String(value))}`)}
                    </span>
                  </span>
                  <Time at={last_at} />
                </li>
              ))}
            </ul>
            {size < Math.min(total, 1_000) && (
              <div class="row">
                <Button onClick={() => setSize(size * step)}>Show more</Button>
              </div>
            )}
          </>
        )}
      </Shown>
    </Panel>
  );
}
