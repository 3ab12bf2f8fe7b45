import { StartupError } from "../../domain/errors.ts";
import { systemClock } from "../../lib/clock.ts";
import { formatDuration } from "../../lib/duration.ts";
import { type Account, withAccount } from "../client/account.ts";
import { refusalOf, textIn } from "../client/answer.ts";
import { clientFlags, signInDetails } from "../client/sign-in.ts";
import { type Command, jsonFlag } from "../command.ts";
import { counted } from "../count.ts";
import { idInPath } from "../id-in-path.ts";
import { exitCode, type Io } from "../io.ts";
import { createStyle } from "../style.ts";
import { formatPairs, formatTable, plainText } from "../table.ts";
import { reasonWords, targetWords, webhookWords } from "../webhook-words.ts";
import type { AttemptRow, EventRow } from "./api.ts";
import { readHolds, waitWords } from "./waiting.ts";
import { answerStart, attemptReason, failureWords, markState } from "./words.ts";

/** Attempts per page; the server's limit. */
const pageSize = 1000;

export const eventsShowCommand: Command = {
  words: ["events", "show"],
  operands: ["ID"],
  flags: [
    {
      ...jsonFlag,
      doc: "Print one JSON object with `eventId`, `records` and `attempts`, as the server has them.",
    },
    ...clientFlags,
  ],
  summary: "Show an event: its deliveries, every attempt, its payload",
  details: `Exit code 1: the account has no such event.
${signInDetails}`,
  async run({ operands: [eventId = ""], flags }, io) {
    const path = `/v1/events/${idInPath(eventId, "postrider events list")}`;
    return withAccount({ io, clock: systemClock, flags }, async (account) => {
      const found = await account.call("GET", path);
      if (found.status === 404) throw noSuchEvent(eventId);
      if (found.status !== 200) throw refusalOf(account, found);
      const attempts = await readAttempts(account, path);
      if (flags.has("--json")) {
        // Keeps payloads as the exact text that they are.
        const rest = JSON.stringify({ attempts }).slice(1);
        io.out(`{"eventId":${JSON.stringify(eventId)},"records":${found.text},${rest}`);
        return exitCode.ok;
      }
      const records = found.json as readonly EventRow[];
      const hasPayload = records.some(({ originalPayload }) => originalPayload !== null);
      const payload = hasPayload ? await readPayload(account, path) : null;
      const isWaiting = records.some(({ state }) => state === "PENDING");
      const holds = isWaiting ? await readHolds(account) : null;
      const waits = (record: EventRow) =>
        holds && record.state === "PENDING" ? waitWords(record, holds, found.serverTime ?? systemClock.now()) : null;
      io.out(forPeople(account.linkTo(eventId), { records, attempts, payload, waits }, io));
      return exitCode.ok;
    });
  },
};

const noSuchEvent = (eventId: string) =>
  new StartupError(`The account has no event "${plainText(eventId)}". Try: postrider events list`);

async function readAttempts(account: Account, path: string): Promise<readonly AttemptRow[]> {
  const attempts: AttemptRow[] = [];
  for (let page = 0; ; page += 1) {
    const reply = await account.call("GET", `${path}/attempts?size=${pageSize}&page=${page}`);
    if (reply.status !== 200) throw refusalOf(account, reply);
    const read = reply.json as readonly AttemptRow[];
    attempts.push(...read);
    if (read.length < pageSize) return attempts;
  }
}

/** The payload as submitted, taken from the end of a delivery's body. Null when it no longer exists. */
async function readPayload({ call }: Account, path: string): Promise<string | null> {
  const body = textIn((await call("GET", `${path}/delivery`)).json, "body");
  const before = '"payload":';
  return body?.slice(body.indexOf(before) + before.length, -1) ?? null;
}

interface Shown {
  readonly records: readonly EventRow[];
  readonly attempts: readonly AttemptRow[];
  /** Null: it is lost. */
  readonly payload: string | null;
  /** What a record waits for; null: for nothing. */
  waits(record: EventRow): string | null;
}

function forPeople(link: string, { records, attempts, payload, waits }: Shown, io: Io): string {
  const style = createStyle(io);
  const [{ eventId = "", eventType = null, orderingKey, ingestionTimestamp = "" } = {}] = records;
  const head = formatPairs(
    [
      ["type", plainText(eventType ?? "–")],
      ...(orderingKey === undefined ? [] : [["ordering key", plainText(orderingKey)] as const]),
      ["accepted", ingestionTimestamp],
      ["link", link],
    ],
    style,
  );
  const urls = new Set([...records, ...attempts].map(({ targetWebhook }) => targetWebhook));
  const parts = [...urls].map((url) => {
    const record = records.find(({ targetWebhook }) => targetWebhook === url);
    const own = attempts.filter(({ targetWebhook }) => targetWebhook === url);
    return deliveryPart(url, record, own, record ? waits(record) : null, io);
  });
  const isErased = records.some(({ payloadErased }) => payloadErased);
  const payloadWords = isErased
    ? style.faint("It was erased as it had become old; the event cannot be replayed.")
    : null;
  const shown = payload === null ? payloadWords : printable(payload);
  const shownPayload = shown === null ? [] : [`${style.bold("Payload")}\n${shown}`];
  return [`${style.bold(eventId)}\n${head}`, ...parts, ...shownPayload].join("\n\n");
}

/** @param record undefined: a replay has replaced it, and only its attempts are left */
function deliveryPart(
  url: string,
  record: EventRow | undefined,
  attempts: readonly AttemptRow[],
  waiting: string | null,
  io: Io,
): string {
  const style = createStyle(io);
  const lines = [
    record
      ? `${markState(record.state, style)}  ${style.bold(targetWords(record))}`
      : `REPLACED  ${style.bold(webhookWords(url))}`,
  ];
  if (record?.errorReason) {
    const latest = record.errorCode === "http_status" ? attempts.at(-1) : undefined;
    lines.push(`  ${attemptReason(record.errorReason, latest)}`);
  }
  if (waiting !== null) lines.push(`  ${waiting}`);
  if (record?.replayGroupId) lines.push(`  replay ${plainText(record.replayGroupId)}`);
  if (record?.attemptsForgotten) {
    lines.push(style.faint(`  ${counted(record.attemptsForgotten, "earlier attempt")} no longer listed`));
  }
  if (attempts.length > 0) {
    const rows = attempts.map((attempt) => [
      String(attempt.number),
      attempt.startedAt,
      attempt.errorCode === null || attempt.errorCode === "http_status"
        ? String(attempt.statusCode ?? reasonWords(attempt.error ?? ""))
        : failureWords(attempt),
      formatDuration(attempt.durationMs),
      plainText(attempt.replayGroupId ?? ""),
      answerStart(attempt.responseBody),
    ]);
    const table = formatTable(["no.", "started", "answer", "took", "replay", "body"], rows, style);
    lines.push(table.replace(/^/gm, "  "));
  }
  return lines.join("\n");
}

/** Characters that a terminal would act on are escaped the JSON way, so that a payload stays the same JSON. */
const printable = (json: string): string =>
  json.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    /[\n\t]/.test(character)
      ? character
      : Array.from(
          { length: character.length },
          (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`,
        ).join(""),
  );
