import { count } from "../../format/number.ts";
import { Icon, type IconName } from "../../parts/icon.tsx";
import { urlOf } from "../events/filter.ts";
import type { Total } from "../overview/situation.ts";
import type { WebhookSituation } from "./situation.ts";

/** What became of the events: each figure leads to the list that it counts. */
export function Figures({ webhookId, situation }: { webhookId: string; situation: WebhookSituation }) {
  const { from, delivered, waiting, failed } = situation;
  const figures: readonly { name: string; state: "delivered" | "waiting" | "failed"; icon: IconName; total: Total }[] =
    [
      { name: "Delivered", state: "delivered", icon: "check", total: delivered },
      { name: "Waiting", state: "waiting", icon: "wait", total: waiting },
      { name: "Failed", state: "failed", icon: "cross", total: failed },
    ];
  return (
    <dl class="figures webhook-figures">
      {figures.map(({ name, state, icon, total }) => (
        <div key={name} class="figure">
          <dt>
            <a class="spread" href={urlOf({ state, webhook: webhookId, span: "custom", from })}>
              <span class={`state ${state}`}>
                <Icon name={icon} />
              </span>
              {name}
            </a>
          </dt>
          <dd>
            <strong>
              {count(total.n)}
              {!total.isExact && "+"}
            </strong>
          </dd>
        </div>
      ))}
    </dl>
  );
}
