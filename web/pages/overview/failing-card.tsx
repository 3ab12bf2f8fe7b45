import { showControls } from "../../format/controls.ts";
import { explainFailure } from "../../format/failure.ts";
import { count } from "../../format/number.ts";
import { exactTimeWithZone } from "../../format/time.ts";
import { LinkButton } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { now, Time } from "../../parts/time.tsx";
import { ReplayFailed } from "../replays/replay-failed.tsx";
import { type Cause, type Failing, sizeOf } from "./failing.ts";
import { listUrl } from "./list-url.ts";
import type { Total, WebhookLine } from "./situation.ts";
import { since } from "./verdict.ts";

/** Of one webhook; the list has all. */
const mostShown = 5;
const mostTypes = 4;
const mostAnswers = 2;

/** A webhook that fails, or has failed: why, for which events, and what to press. */
export function FailingCard({
  failing,
  line,
  from,
  onReplay,
}: {
  failing: Failing;
  /** Of the webhook, if it is registered. */
  line: WebhookLine | undefined;
  /** ISO 8601: what is counted are the events since. */
  from: string;
  /** @param id of a replay that was started */
  onReplay(id: string): void;
}) {
  const { id, name, causes, downSince, isRegistered } = failing;
  const more = causes.length - mostShown;
  const heading = `failing-${id ?? "none"}`;
  return (
    <section class={`panel failing ${downSince === null ? "" : "is-down"}`} aria-labelledby={heading}>
      <header>
        <h2 id={heading}>
          {downSince !== null && (
            <span class="state failed">
              <Icon name="cross" />
            </span>
          )}
          {isRegistered ? (
            <a href={`/webhooks/${id}`}>
              <bdi>{showControls(name)}</bdi>
            </a>
          ) : (
            <bdi>{showControls(name)}</bdi>
          )}
        </h2>
        <p>
          <Share failing={failing} all={line?.all ?? null} from={from} />
        </p>
      </header>
      <ul class="rows">
        {causes.slice(0, mostShown).map((cause) => (
          <CauseRow key={`${cause.code} ${cause.status}`} cause={cause} of={failing} from={from} onReplay={onReplay} />
        ))}
        {more > 0 && (
          <li class="row">
            <a href={listUrl({ state: "failed", webhook: id ?? "", from })}>
              See all that failed, also in {count(more)} other {more === 1 ? "way" : "ways"}
            </a>
          </li>
        )}
      </ul>
    </section>
  );
}

/** "9 of 9 failed since 08:41", where each number leads to so many. */
function Share({ failing, all, from }: { failing: Failing; all: Total | null; from: string }) {
  const { id, waiting, failed, downSince } = failing;
  const webhook = id ?? "";
  const code = id === null ? "no_webhook" : "";
  return (
    <>
      {failed > 0 && (
        <>
          <a href={listUrl({ state: "failed", webhook, code, from })}>{count(failed)}</a>{" "}
          {all !== null && (
            <>
              of <a href={listUrl({ webhook, from })}>{total(all)}</a>{" "}
            </>
          )}
          failed
        </>
      )}
      {failed === 0 && (waiting === 0 ? "Nothing delivered" : retried(waiting))}
      {downSince !== null && (
        <span class="nowrap" title={exactTimeWithZone(downSince)}>
          {" "}
          since {since(downSince, now.value)}
        </span>
      )}
      {failed > 0 && waiting > 0 && `, ${retried(waiting)}`}
      {downSince === null && <span class="soft">{standing(failing)}</span>}
    </>
  );
}

const retried = (n: number): string => (n === 1 ? "1 waits for a retry" : `${count(n)} wait for a retry`);

function standing({ id, isRegistered, isOngoing }: Failing): string {
  if (id === null) return ": no webhook was registered";
  if (!isRegistered) return ", and it was removed";
  return isOngoing ? "" : ", and it delivers again";
}

/** What was counted only so far says so. */
export const total = ({ n, isExact }: Total): string => `${count(n)}${isExact ? "" : "+"}`;

function CauseRow({
  cause,
  of,
  from,
  onReplay,
}: {
  cause: Cause;
  of: Failing;
  from: string;
  onReplay(id: string): void;
}) {
  const { code, status, answers, types, failed } = cause;
  const { short, meaning, remedy } = explainFailure({ errorCode: code, statusCode: status }, "Failed");
  const filter = { webhook: of.id ?? undefined, code: code ?? undefined, status: status ?? undefined, from };
  const list = { webhook: of.id ?? "", code: code ?? "", status: String(status ?? ""), from };
  const n = sizeOf(cause);
  // Of a large cause only the newest records were looked at, which does not say how many there are of each type.
  const isCounted = types.reduce((sum, { records }) => sum + records, 0) === n;
  const events = n === 1 ? "event" : "events";
  return (
    <li class="cause">
      <p class="why" title={`${meaning} ${remedy}`}>
        <strong>{short}</strong>
        {answers.slice(0, mostAnswers).map((answer) => (
          <q key={answer}>{showControls(answer)}</q>
        ))}
        {answers.length > mostAnswers && (
          <span class="soft">and {count(answers.length - mostAnswers)} more answers</span>
        )}
      </p>
      <p class="soft small which">
        {types.some(({ type }) => type !== null) && (
          <span>
            {types.slice(0, mostTypes).map(wordsOf(isCounted)).join(" · ")}
            {types.length > mostTypes && " · …"}
          </span>
        )}
        <span title={exactTimeWithZone(cause.firstAt)}>first {since(cause.firstAt, now.value)}</span>
        <span>
          last <Time at={new Date(cause.lastFailedAt).toISOString()} />
        </span>
        <span>{fate(cause)}</span>
        {cause.isOngoing ? (
          of.downSince === null && <span class="failed">none delivered since</span>
        ) : (
          <span>delivered again since</span>
        )}
      </p>
      <div class="buttons">
        <LinkButton href={listUrl(list)} aria-label={`See ${count(n)} ${events} with ${short}`}>
          See {count(n)}
        </LinkButton>
        {failed > 0 && of.canReplay && (
          <ReplayFailed
            filter={filter}
            n={failed}
            to={of.id === null ? "the registered webhooks" : of.name}
            label={`Replay ${count(failed)} with ${short}`}
            onStarted={onReplay}
          />
        )}
      </div>
    </li>
  );

  function fate({ waiting, failed }: Cause): string {
    if (waiting === 0) return "given up";
    return failed === 0 ? "being retried" : `${count(failed)} given up, ${count(waiting)} being retried`;
  }
}

const wordsOf =
  (isCounted: boolean) =>
  ({ type, records }: Cause["types"][number]): string =>
    `${type === null ? "no type" : showControls(type)}${isCounted ? ` ${count(records)}` : ""}`;
