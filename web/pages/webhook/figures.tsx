import { Figure } from "../../parts/figure.tsx";
import type { IconName } from "../../parts/icon.tsx";
import { urlOf } from "../events/filter.ts";
import { total } from "../overview/failing-card.tsx";
import type { Total } from "../overview/situation.ts";
import type { WebhookSituation } from "./situation.ts";

/** What became of the events: each figure leads to the list it counts. */
export function Figures({ webhookId, situation }: { webhookId: string; situation: WebhookSituation }) {
  const { from, delivered, waiting, failed } = situation;
  const figures: readonly { name: string; state: "delivered" | "waiting" | "failed"; icon: IconName; of: Total }[] = [
    { name: "Delivered", state: "delivered", icon: "check", of: delivered },
    { name: "Waiting", state: "waiting", icon: "wait", of: waiting },
    { name: "Failed", state: "failed", icon: "cross", of: failed },
  ];
  return (
    <dl class="figures webhook-figures">
      {figures.map(({ name, state, icon, of }) => (
        <Figure
          key={name}
          name={name}
          tone={state}
          icon={icon}
          href={urlOf({ state, webhook: webhookId, span: "custom", from })}
          value={total(of)}
        />
      ))}
    </dl>
  );
}
