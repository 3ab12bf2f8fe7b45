import { deliveryStates } from "../../domain/delivery.ts";
import { UsageError } from "../../domain/errors.ts";
import { systemClock } from "../../lib/clock.ts";
import { nearest } from "../../lib/nearest.ts";
import type { Flag } from "../arguments.ts";
import { withAccount } from "../client/account.ts";
import { refusalOf } from "../client/answer.ts";
import {
  type Filtering,
  filters,
  flagOf,
  hintAtPattern,
  mayWait,
  readFilters,
  spellFilters,
} from "../client/filters.ts";
import { ifFound } from "../client/if-found.ts";
import { clientFlags, signInDetails } from "../client/sign-in.ts";
import { hintAtWebhook, resolveWebhook } from "../client/webhook.ts";
import { type Command, jsonFlag } from "../command.ts";
import { count, counted } from "../count.ts";
import { exitCode, type Io } from "../io.ts";
import { createStyle } from "../style.ts";
import { formatTable, plainText } from "../table.ts";
import { targetWords } from "../webhook-words.ts";
import type { EventPage } from "./api.ts";
import { failureWords, markState } from "./words.ts";

const states = deliveryStates.map((state) => state.toLowerCase());

const stateFlag: Flag = {
  name: "--state",
  value: "STATE",
  choices: states,
  doc: `Records in this state: ${states.join(", ")}.`,
};

/** The server's default, too. */
const defaultSize = 20;

const pageFlags: readonly Flag[] = [
  { name: "--page", value: "N", doc: "Page to show, from 0." },
  { name: "--size", value: "N", doc: `Records on a page, 1 to 1000; ${defaultSize} by default.` },
];

const flags: readonly Flag[] = [stateFlag, ...filters.map(flagOf), ...pageFlags];

export const eventsListCommand: Command = {
  words: ["events", "list"],
  operands: [],
  flags: [
    ...flags,
    { ...jsonFlag, doc: "Print the server's answer, one JSON object, payloads byte for byte." },
    ...clientFlags,
  ],
  summary: "List events and what became of them, newest first",
  details: `One line for each record, that is, for each webhook of an event. Filters are combined
(AND). The exit code is 0 even if nothing matches.
${signInDetails}`,
  async run({ flags: given }, io) {
    const isJson = given.has("--json");
    const filtering = readFilters(given, filters, systemClock.now());
    const state = readState(given.get(stateFlag.name));
    return withAccount({ io, clock: systemClock, flags: given }, async (account) => {
      const query = queryOf(await resolveWebhook(filtering, account, false), given, isJson);
      const reply = await account.call("GET", `/v1/events${state === null ? "" : `/state/${state}`}?${query}`);
      if (reply.status !== 200) throw refusalOf(account, reply, "postrider help events list");
      if (isJson) io.out(reply.text);
      else {
        const found = reply.json as EventPage;
        io.out(forPeople(found, given, io));
        if (found.total === 0) {
          const isRetried = state === "FAILED" && mayWait(filtering);
          const hint =
            hintAtPattern(filtering) ??
            (await ifFound(hintAtWebhook(filtering, account))) ??
            (isRetried ? hintAtRetries(given) : null);
          if (hint !== null) io.err(hint);
        }
      }
      return exitCode.ok;
    });
  },
};

function queryOf(filtering: Filtering, given: ReadonlyMap<string, string>, withPayload: boolean): URLSearchParams {
  const query = new URLSearchParams({ payload: String(withPayload) });
  for (const [name, value] of Object.entries(filtering)) query.set(name, String(value));
  for (const { name } of pageFlags) {
    const text = given.get(name);
    if (text !== undefined) query.set(name.slice(2), text);
  }
  return query;
}

function readState(text: string | undefined): string | null {
  if (text === undefined) return null;
  const state = text.toLowerCase();
  if (states.includes(state)) return state.toUpperCase();
  const meant = nearest(state, states);
  const remedy = meant === null ? states.join(", ") : `--state ${meant}`;
  throw new UsageError(`"${text}" is not a state. Try: ${remedy}`);
}

/** An empty list would otherwise look as if nothing were wrong. */
function hintAtRetries(given: ReadonlyMap<string, string>): string {
  const command = ["postrider events list --state pending", ...spellFilters(given, filters)].join(" ");
  return `Deliveries that will be retried are not listed as failed. To see them: ${command}`;
}

const columns = ["accepted", "state", "failure", "attempts", "event", "type", "webhook"];
const stateColumn = columns.indexOf("state");

function forPeople(found: EventPage, given: ReadonlyMap<string, string>, io: Io): string {
  const { events, total, totalIsExact = true, searchedTo = null } = found;
  const style = createStyle(io);
  const page = Number(given.get("--page") ?? 0);
  const size = Number(given.get("--size") ?? defaultSize);
  // Further back come events that were not looked at; what was found has to be shown before.
  const hasMore = (page + 1) * size < total || (!totalIsExact && searchedTo === null);
  const further = hasMore || searchedTo === null ? "" : ` Searched back to ${searchedTo}; further: --to ${searchedTo}`;
  if (events.length === 0) {
    return total === 0 ? `No records match.${further}` : `Page ${page} is behind the last one.${further}`;
  }
  const rows = events.map((record) => [
    record.ingestionTimestamp,
    record.state,
    failureWords(record),
    String(record.attempts),
    record.eventId,
    plainText(record.eventType ?? "–"),
    targetWords(record),
  ]);
  const table = formatTable(columns, rows, style, (cell, column) =>
    column === stateColumn ? markState(cell, style) : cell,
  );
  const of = totalIsExact ? count(total) : `more than ${count(total)}`;
  const more = hasMore ? ` More: --page ${page + 1}` : "";
  return `${table}\n${style.faint(`${counted(events.length, "record")} of ${of}.${more}${further}`)}`;
}
