import { isolated, showControls } from "../../format/controls.ts";
import { explainFailure } from "../../format/failure.ts";
import { count } from "../../format/number.ts";
import { exactTimeWithZone } from "../../format/time.ts";
import { LinkButton } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import type { Facts } from "../../parts/replay-question.tsx";
import { now, Time } from "../../parts/time.tsx";
import { holdsDeliveries } from "../../session/holding.ts";
import { ReplayFailed } from "../replays/replay-failed.tsx";
import { keyOf } from "./begun.ts";
import { type Cause, type Failing, saysNothing, sinceThen, sizeOf } from "./failing.ts";
import { listUrl } from "./list-url.ts";
import type { Total, WebhookLine } from "./situation.ts";
import { untriedOf } from "./untried.ts";
import type { Replayed } from "./use-begun.ts";
import { since } from "./verdict.ts";

/** For one webhook; the list has all of them. */
const mostShown = 5;
const mostTypes = 4;
const mostAnswers = 2;

/** A webhook that fails, or has failed: why, for which events, and what to do about it. */
export function FailingCard({
  failing,
  line,
  from,
  replayed,
}: {
  failing: Failing;
  /** The webhook's line, if it is registered. */
  line: WebhookLine | undefined;
  /** ISO 8601: the events since then are counted. */
  from: string;
  replayed: Replayed;
}) {
  const { id, name, causes, downSince, isRegistered, failed, canReplay } = failing;
  const ways = causes.filter((cause) => cause.failed > 0);
  const more = causes.length - mostShown;
  const heading = `failing-${id ?? "none"}`;
  return (
    <section class={`panel failing ${downSince === null ? "" : "is-down"}`} aria-labelledby={heading}>
      <header>
        <h2 id={heading}>
          {(downSince !== null || isOver(failing)) && (
            <span class={`state ${downSince === null ? "delivered" : "failed"}`}>
              <Icon name={downSince === null ? "check" : "cross"} />
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
          <Share failing={failing} line={line} from={from} />
        </p>
        {ways.length > 1 && canReplay && (
          <div class="end">
            <ReplayFailed
              filter={{ webhook: id ?? undefined, code: id === null ? "no_webhook" : undefined, from }}
              n={failed}
              to={targetOf(failing)}
              facts={factsOf(ways, from)}
              text="Replay all"
              label={`Replay all ${count(failed)} that failed for ${isolated(name)}`}
              onStarted={(replay) => replayed.begin({ replay, webhook: id, cause: "" })}
            />
          </div>
        )}
      </header>
      <ul class="rows">
        {causes.slice(0, mostShown).map((cause) => (
          <CauseRow key={keyOf(cause)} cause={cause} of={failing} from={from} replayed={replayed} />
        ))}
        {more > 0 && (
          <li class="row">
            <a href={listUrl({ state: "failed", webhook: id ?? "", from })}>
              See all that failed, also in {count(more)} other {more === 1 ? "way" : "ways"}
            </a>
          </li>
        )}
      </ul>
      {replayed.rowOf(id, "")}
    </section>
  );
}

/** What failed was replayed, and has arrived. */
const isOver = (failing: Failing): boolean => sizeOf(failing) === 0 && failing.causes.length > 0;

const targetOf = ({ id, name }: Failing): string => (id === null ? "the registered webhooks" : isolated(name));

/** What a replay of these covers. */
const factsOf = (causes: readonly Cause[], from: string): Facts => [
  ["Failed with", causes.map((cause) => [shortOf(cause), ...answersOf(cause)].join(", ")).join("; ")],
  ...typesFact(causes),
  ["Accepted", `since ${since(Date.parse(from), now.value)}`],
];

/** None of a cause that the server only sums up: its types are not known. */
function typesFact(causes: readonly Cause[]): Facts {
  if (causes.every(({ types }) => types.length === 0)) return [];
  return [["Event types", causes.map(typesOf).filter(Boolean).join(" · ") || "no type"]];
}

/** The most frequent ones, which the receiver has written. */
const answersOf = ({ answers }: Cause): string[] => answers.slice(0, mostAnswers).map(isolated);

const shortOf = ({ code, status }: Cause): string =>
  explainFailure({ errorCode: code, statusCode: status }, "Failed").short;

/** "9 of 9 failed, down since 08:41", where each number leads to a list of that many: some may have failed before that. */
function Share({ failing, line, from }: { failing: Failing; line: WebhookLine | undefined; from: string }) {
  const { id, waiting, failed, downSince } = failing;
  const all = line?.all ?? null;
  const untried = untriedOf(failing, line?.pending ?? null);
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
      {isOver(failing) ? "No failures left" : failed === 0 && (waiting === 0 ? "Nothing delivered" : retried(waiting))}
      {downSince !== null && (
        <span class="nowrap" title={exactTimeWithZone(downSince)}>
          {failed > 0 && ", down"} since {since(downSince, now.value)}
        </span>
      )}
      {failed > 0 && waiting > 0 && `, ${retried(waiting)}`}
      {untried.n > 0 && `, ${total(untried)} ${untried.n === 1 ? "waits for its turn" : "wait for their turn"}`}
      {downSince === null && !isOver(failing) && <span class="soft">{standing(failing)}</span>}
    </>
  );
}

const retried = (n: number): string => (n === 1 ? "1 waits for a retry" : `${count(n)} wait for a retry`);

function standing({ id, isRegistered, isOngoing, causes }: Failing): string {
  if (id === null) return ": no webhook was registered";
  if (!isRegistered) return ", and it was removed";
  return isOngoing || causes.every(({ code }) => saysNothing({ errorCode: code })) ? "" : ", and it delivers again";
}

/** Marks a count that is only known to be a minimum. */
export const total = ({ n, isExact }: Total): string => `${count(n)}${isExact ? "" : "+"}`;

function CauseRow({ cause, of, from, replayed }: { cause: Cause; of: Failing; from: string; replayed: Replayed }) {
  const { code, status, answers, failed } = cause;
  const shown = answersOf(cause);
  const more = answers.length - shown.length + cause.moreAnswers;
  const { short, meaning, remedy } = explainFailure({ errorCode: code, statusCode: status }, "Failed");
  const filter = { webhook: of.id ?? undefined, code: code ?? undefined, status: status ?? undefined, from };
  const list = { webhook: of.id ?? "", code: code ?? "", status: String(status ?? ""), from };
  const n = sizeOf(cause);
  const after = sinceThen(cause, of);
  const events = n === 1 ? "event" : "events";
  return (
    <li class={`cause ${n === 0 ? "is-over" : ""}`}>
      <p class="why" title={`${meaning} ${remedy}`}>
        <strong>{short}</strong>
        {shown.map((answer) => (
          <q key={answer} title={answer}>
            {answer}
          </q>
        ))}
        {more > 0 && (
          <span class="soft">
            {shown.length > 0 ? `and ${count(more)} more` : count(more)} {more === 1 ? "answer" : "answers"}
          </span>
        )}
      </p>
      <p class="soft small which">
        <span>{typesOf(cause)}</span>
        <span title={exactTimeWithZone(cause.firstAt)}>first {since(cause.firstAt, now.value)}</span>
        <span>
          last <Time at={new Date(cause.lastFailedAt).toISOString()} />
        </span>
        {n === 0 ? (
          <span>none left</span>
        ) : (
          <>
            <span>{fate(cause)}</span>
            {after !== null && <span class={cause.isOngoing ? "failed" : ""}>{after}</span>}
          </>
        )}
      </p>
      <div class="buttons">
        {n > 0 && (
          <LinkButton href={listUrl(list)} aria-label={`See ${count(n)} ${events} with ${short}`}>
            See {count(n)}
          </LinkButton>
        )}
        {failed > 0 && of.canReplay && (
          <ReplayFailed
            filter={filter}
            n={failed}
            to={targetOf(of)}
            facts={factsOf([cause], from)}
            label={`Replay ${count(failed)} with ${short}`}
            onStarted={(replay) => replayed.begin({ replay, webhook: of.id, cause: keyOf(cause) })}
          />
        )}
      </div>
      {replayed.rowOf(of.id, keyOf(cause))}
    </li>
  );

  function fate({ waiting, failed }: Cause): string {
    if (waiting === 0) return "given up";
    const retry = holdsDeliveries() ? "paused" : "being retried";
    return failed === 0 ? retry : `${count(failed)} given up, ${count(waiting)} ${retry}`;
  }
}

/** The most frequent event types; "": none of them has a type. */
function typesOf(cause: Cause): string {
  const { types } = cause;
  if (types.every(({ type }) => type === null)) return "";
  // For a large cause only the newest records were examined, which does not say how many there are of each type.
  const isCounted = types.reduce((sum, { records }) => sum + records, 0) === sizeOf(cause);
  const words = types.map(
    ({ type, records }) => `${type === null ? "no type" : isolated(type)}${isCounted ? ` ${count(records)}` : ""}`,
  );
  return [...words.slice(0, mostTypes), ...(words.length > mostTypes ? ["…"] : [])].join(" · ");
}
