import { showControls } from "../../format/controls.ts";
import { Icon } from "../../parts/icon.tsx";
import { latency } from "./charts.ts";
import { total } from "./failing-card.tsx";
import { listUrl } from "./list-url.ts";
import { useStats } from "./over-time.tsx";
import type { Range } from "./range.ts";
import type { WebhookLine } from "./situation.ts";

/** The webhooks without failures, or that are not known to have any, as briefly as possible. */
export function WebhookLines({ lines, from, range }: { lines: readonly WebhookLine[]; from: string; range: Range }) {
  if (lines.length === 0) return null;
  return (
    <ul
      class="well"
      aria-label={lines.some(({ hasFailed }) => hasFailed === null) ? "Other webhooks" : "Webhooks without a failure"}
    >
      {lines.map(({ id, name, state, all, delivered, hasFailed }) => (
        <li key={id}>
          {(state !== "active" || hasFailed === false) && (
            <span class={`state ${state === "active" ? "delivered" : "waiting"}`}>
              <Icon name={state === "active" ? "check" : "wait"} />
            </span>
          )}
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
                  {delivered && (
                    <>
                      <a href={listUrl({ state: "delivered", webhook: id, from })}>{total(delivered)}</a> of{" "}
                    </>
                  )}
                  <a href={listUrl({ webhook: id, from })}>{total(all)}</a> · <P95 webhook={id} range={range} />
                </>
              )}
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}

function P95({ webhook, range }: { webhook: string; range: Range }) {
  return <>p95 {latency(useStats(range, webhook).data?.total.p95Ms ?? null)}</>;
}
