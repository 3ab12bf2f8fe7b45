import { showControls } from "../../format/controls.ts";
import { Icon } from "../../parts/icon.tsx";
import { total } from "./failing-card.tsx";
import { listUrl } from "./list-url.ts";
import type { WebhookLine } from "./situation.ts";

/** The webhooks that nothing is wrong with, as short as that can be said. */
export function WebhookLines({ lines, from }: { lines: readonly WebhookLine[]; from: string }) {
  if (lines.length === 0) return null;
  return (
    <ul class="well" aria-label="Webhooks that deliver">
      {lines.map(({ id, name, counts }) => (
        <li key={id}>
          <span class="state delivered">
            <Icon name="check" />
          </span>
          <bdi>{showControls(name)}</bdi>
          {counts && (
            <span class="soft">
              {counts.all.n === 0 ? (
                "nothing sent"
              ) : (
                <>
                  <a href={listUrl({ state: "delivered", webhook: id, from })}>{total(counts.delivered)}</a> of{" "}
                  <a href={listUrl({ webhook: id, from })}>{total(counts.all)}</a>
                </>
              )}
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}
