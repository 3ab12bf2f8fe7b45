import type { WebhookHealth } from "../../api/types.ts";
import { count, percent } from "../../format/number.ts";
import { withoutUrl } from "../../format/outcome.ts";
import { Shares } from "../../parts/shares.tsx";
import { Time } from "../../parts/time.tsx";

/** How the latest records of a webhook went. */
export function Health({ health }: { health: WebhookHealth }) {
  const { records, delivered, failed, pending, lastDeliveredAt, lastFailedAt, lastError } = health;
  if (records === 0) return <p class="soft small">No recent deliveries to judge by. Tests are not counted.</p>;
  const ended = delivered + failed;
  return (
    <div class="health">
      <Shares
        of="deliveries"
        parts={[
          { tone: "delivered", n: delivered, word: "delivered" },
          { tone: "failed", n: failed, word: "failed" },
          { tone: "waiting", n: pending, word: "waiting" },
        ]}
      />
      <p>
        {ended > 0 && <strong>{percent(delivered, ended)} delivered</strong>}
        <span class="soft">
          {ended > 0 && " · "}
          {failed > 0 && `${count(failed)} failed, `}
          {pending > 0 && `${count(pending)} waiting, `}
          {records === 1 ? "1 delivery" : `latest ${count(records)} deliveries`}
        </span>
      </p>
      <p class="soft small">
        {lastDeliveredAt === null ? (
          "None delivered yet."
        ) : (
          <>
            Last delivered <Time at={lastDeliveredAt} />.
          </>
        )}
      </p>
      {lastError !== null && lastFailedAt !== null && (
        <p class="small last-error">
          <span class="soft">
            Last error <Time at={lastFailedAt} />:
          </span>{" "}
          {withoutUrl(lastError, health.url)}
        </p>
      )}
    </div>
  );
}
