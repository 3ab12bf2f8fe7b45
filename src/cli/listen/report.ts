import { formatDuration } from "../../lib/duration.ts";
import { formatIso } from "../../lib/iso-time.ts";
import type { Io } from "../io.ts";
import { createStyle } from "../style.ts";
import { plainText } from "../table.ts";
import type { Forwarded } from "./forward.ts";
import type { ListenOptions } from "./options.ts";

/** Prints a line for each attempt to forward an event, and counts the events. */
export interface Report {
  forwarded(forwarded: Forwarded): void;
  /** The last line: a summary. What ends after it is not printed. */
  close(): string;
}

export interface ReportOptions extends Pick<ListenOptions, "forwardTo" | "kinds" | "json"> {
  io: Io;
  /** Where the server shows an event. */
  linkTo(eventId: string): string;
  now(): number;
}

export function createReport({ io, now, linkTo, json, kinds, forwardTo }: ReportOptions): Report {
  const style = createStyle(io);
  const showsKind = kinds.size > 1 || !kinds.has("accepted");
  const counts = { acknowledged: 0, otherwise: 0, unanswered: 0 };
  let isClosed = false;

  const forPeople = ({ item, eventType, status, error, durationMs, retryInMs }: Forwarded): string => {
    const answer =
      status === null ? style.bad(error ?? "") : isGood(status) ? style.good(`${status}`) : style.bad(`${status}`);
    return [
      style.faint(timeOfDay(now())),
      ...(showsKind ? [item.kind.padEnd("delivered".length)] : []),
      ...(item.webhook === null ? [] : [plainText(item.webhook)]),
      answer,
      style.faint(formatDuration(durationMs)),
      ...(retryInMs === null ? [] : [style.faint(`retry in ${formatDuration(retryInMs)}`)]),
      ...(eventType === null ? [] : [plainText(eventType)]),
      linkTo(item.eventId),
    ].join("  ");
  };

  const forPrograms = ({ item, eventType, status, error, durationMs, attempt, retryInMs }: Forwarded): string =>
    JSON.stringify({
      at: formatIso(now()),
      event: item.eventId,
      eventType,
      kind: item.kind,
      webhook: item.webhook,
      forwardedTo: forwardTo.href,
      status,
      durationMs,
      error,
      attempt,
      retryInMs,
      link: linkTo(item.eventId),
    });

  function count({ status }: Forwarded): void {
    if (status === null) counts.unanswered += 1;
    else if (isGood(status)) counts.acknowledged += 1;
    else counts.otherwise += 1;
  }

  return {
    forwarded(forwarded) {
      if (isClosed) return;
      if (forwarded.retryInMs === null) count(forwarded);
      io.out(json ? forPrograms(forwarded) : forPeople(forwarded));
    },
    close() {
      isClosed = true;
      const { acknowledged, otherwise, unanswered } = counts;
      const total = acknowledged + otherwise + unanswered;
      const parts = [
        `${acknowledged} answered with 2xx`,
        ...(otherwise > 0 ? [`${otherwise} with another status`] : []),
        ...(unanswered > 0 ? [`${unanswered} without a response`] : []),
      ];
      return total === 0 ? "Nothing was forwarded." : `${total} forwarded: ${parts.join(", ")}.`;
    },
  };
}

const isGood = (status: number) => status >= 200 && status < 300;

/** `14:02:11` by this machine's clock, to match the one on the user's wall. */
function timeOfDay(ms: number): string {
  const at = new Date(ms);
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}
