import type { WebhookHealth } from "../../api/types.ts";
import { count, successWords } from "../../format/number.ts";
import { Shares } from "../../parts/shares.tsx";
import { Time } from "../../parts/time.tsx";
import type { Failing } from "../overview/failing.ts";
import { lastErrorOf } from "./last-error.ts";

/** How the latest records of a webhook went, and its latest error. @param failing as in `lastErrorOf` */
export function Health({ health, failing }: { health: WebhookHealth; failing: Failing | undefined }) {
  const { records, delivered, failed, pending, lastDeliveredAt } = health;
  const lastError = lastErrorOf(health, failing);
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
        {ended > 0 && <strong>{successWords(delivered, ended, failing?.waiting ?? 0)}</strong>}
        <span class="soft">
          {ended > 0 && " · "}
          {failed > 0 && `${count(failed)} failed, `}
          {pending > 0 && `${count(pending)} waiting, `}
          {records === 1 ? "1 delivery" : `latest ${count(records)} deliveries`}
        </span>
      </p>
      <p class="soft small">
        {lastDeliveredAt === null ? (
          records === 1 ? (
            "Not delivered yet."
          ) : (
            "None of these delivered yet."
          )
        ) : (
          <>
            Last delivered <Time at={lastDeliveredAt} />.
          </>
        )}
      </p>
      {lastError !== null && (
        <p class="small last-error">
          <span class="soft">
            Last error <Time at={lastError.at} />:
          </span>{" "}
          {lastError.words}
        </p>
      )}
    </div>
  );
}
