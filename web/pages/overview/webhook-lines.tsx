import { showControls } from "../../format/controls.ts";
import { Icon } from "../../parts/icon.tsx";
import { total } from "./failing-card.tsx";
import { listUrl } from "./list-url.ts";
import type { WebhookLine } from "./situation.ts";

/** The webhooks of which nothing failed, as short as that can be said. */
export function WebhookLines({ lines, from }: { lines: readonly WebhookLine[]; from: string }) {
  if (lines.length === 0) return null;
  return (
    <ul class="well" aria-label="Webhooks without a failure">
      {lines.map(({ id, name, state, all }) => (
        <li key={id}>
          <span class={`state ${state === "active" ? "delivered" : "waiting"}`}>
            <Icon name={state === "active" ? "check" : "wait"} />
          </span>
          <a href={`/webhooks/${id}`}>
            <bdi>{showControls(name)}</bdi>
          </a>
          {state !== "active" && <span class="state waiting">{state}</span>}
          {all && (
            <span class="soft">
              {all.n === 0 ? (
                "nothing sent"
              ) : (
                <>
                  <a href={listUrl({ webhook: id, from })}>{total(all)}</a>, none failed
                </>
              )}
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}
