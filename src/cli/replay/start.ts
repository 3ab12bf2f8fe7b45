import { StartupError, UsageError } from "../../domain/errors.ts";
import type { Clock } from "../../lib/clock.ts";
import { formatIso } from "../../lib/iso-time.ts";
import type { Flag } from "../arguments.ts";
import type { Account } from "../client/account.ts";
import { refusalOf, textIn } from "../client/answer.ts";
import {
  type Filtering,
  flagOf,
  hintAtPattern,
  mayWait,
  readFilters,
  replayFilters,
  spellFilters,
} from "../client/filters.ts";
import { ifFound } from "../client/if-found.ts";
import type { Reply } from "../client/server.ts";
import { resolveWebhook } from "../client/webhook.ts";
import { jsonFlag } from "../command.ts";
import { confirm } from "../confirmation.ts";
import { counted } from "../count.ts";
import { Interrupted } from "../interrupted.ts";
import { exitCode, type Io } from "../io.ts";
import { plainText } from "../table.ts";
import { webhookWords } from "../webhook-words.ts";
import { followReplay, readReplay } from "./follow.ts";
import { reachHints } from "./reach.ts";

/** What to replay: the API's kind, and the fields that go with it, including filters. */
export interface Selection {
  readonly kind: "single" | "failed" | "all";
  readonly fields: Filtering;
}

export interface StartOptions {
  readonly selection: Selection;
  /** The filters as typed. */
  readonly spelt: readonly string[];
  readonly label: string;
  readonly previewOnly: boolean;
  readonly isConfirmed: boolean;
  /** Return as soon as the replay is accepted. */
  readonly detach: boolean;
  readonly json: boolean;
}

/** Sending more events than this needs confirmation, so that a slip of the hand cannot do it. */
const mostUnconfirmed = 100;

const labelFlag: Flag = {
  name: "--label",
  value: "TEXT",
  doc: "Label that the records and deliveries carry; by default the kind and the time.",
};
const detachFlag: Flag = { name: "--detach", doc: "Print the replay's id as soon as it is accepted, and end." };
const startJsonDoc = "Print the replay as it stands at the end, one JSON object";

export const singleFlags: readonly Flag[] = [
  ...replayFilters.filter(({ field }) => field === "webhook").map(flagOf),
  labelFlag,
  detachFlag,
  { ...jsonFlag, doc: `${startJsonDoc}.` },
];

export const bulkFlags: readonly Flag[] = [
  ...replayFilters.map(flagOf),
  { name: "--preview", doc: "Only count the events that match." },
  { name: "--yes", doc: `Do not ask for confirmation above ${mostUnconfirmed} events. Required without a terminal.` },
  labelFlag,
  detachFlag,
  { ...jsonFlag, doc: `${startJsonDoc}; with --preview, the server's count.` },
];

/** @throws UsageError */
export function readStartOptions(
  { kind, fields }: Selection,
  flags: ReadonlyMap<string, string>,
  now: number,
): StartOptions {
  const selection = { kind, fields: { ...fields, ...readFilters(flags, replayFilters, now) } };
  const label = flags.get(labelFlag.name) ?? defaultLabel(kind, now);
  if (label === "") throw new UsageError("--label must not be empty. Try: --label after-the-outage");
  return {
    selection,
    spelt: spellFilters(flags, replayFilters),
    label,
    previewOnly: flags.has("--preview"),
    isConfirmed: flags.has("--yes"),
    detach: flags.has("--detach"),
    json: flags.has("--json"),
  };
}

/** `failed-20260301-123456`, in UTC: shows anyone who looks at a record later which replay it was. */
function defaultLabel(kind: Selection["kind"], now: number): string {
  const [date = "", time = ""] = formatIso(now).split("T");
  return `${kind === "single" ? "event" : kind}-${date.replaceAll("-", "")}-${time.slice(0, 8).replaceAll(":", "")}`;
}

/** Counts, asks for confirmation, starts the replay and follows it. @throws StartupError */
export async function replay(typed: StartOptions, account: Account, io: Io, clock: Clock): Promise<number> {
  const { kind, fields } = typed.selection;
  const selection = { kind, fields: await resolveWebhook(fields, account, true) };
  const options = { ...typed, selection };
  const { json } = options;
  if (selection.kind !== "single") {
    const preview = await countSelected(selection, account);
    const sendable = preview.selected - preview.payloadsErased;
    if (options.previewOnly || sendable === 0) {
      io.out(json ? preview.text : matchWords(preview));
      if (!json && preview.selected === 0) {
        const isRetried = selection.kind === "failed" && mayWait(selection.fields);
        const hint = hintAtPattern(selection.fields) ?? (isRetried ? hintAtRetries(options) : null);
        if (hint !== null) io.err(hint);
      }
      const hints = !json && sendable > 0 ? await ifFound(reachHints(selection, account)) : null;
      for (const hint of hints ?? []) io.err(hint);
      return exitCode.ok;
    }
    if (sendable > mostUnconfirmed && !options.isConfirmed && !(await isConfirmed(sendable, selection, io))) {
      io.err("Nothing was replayed.");
      return exitCode.failed;
    }
  }
  const id = await start(options, account, io);
  const { eventId } = selection.fields;
  if (!options.detach) {
    return followReplay(id, account, { io, clock, json, ...(eventId !== undefined && { eventId: String(eventId) }) });
  }
  io.out(json ? (await readReplay(id, account.call, account)).text : id);
  return exitCode.ok;
}

/** Not how many are sent: the server decides only then which webhooks take them. */
function matchWords({ selected, payloadsErased }: Preview): string {
  if (selected === 0) return "No event matches; nothing to replay.";
  const match = `${counted(selected, "event")} ${selected === 1 ? "matches" : "match"}`;
  if (payloadsErased === 0) return `${match}.`;
  return `${match}; ${counted(payloadsErased, "payload")} ${payloadsErased === 1 ? "was" : "were"} erased.`;
}

/** That nothing has failed would otherwise look as if nothing were wrong. */
function hintAtRetries({ selection: { fields }, spelt }: StartOptions): string {
  const isNarrow = fields.status !== undefined || fields.code !== undefined;
  // Without one of these, a replay of all would also deliver again what was acknowledged.
  const command = ["postrider replay all", ...spelt, ...(isNarrow ? [] : ["--status N (or --code CODE)"])].join(" ");
  return `Deliveries that will be retried do not count as failed. To send them now: ${command}`;
}

interface Preview {
  readonly selected: number;
  readonly payloadsErased: number;
}

async function countSelected({ kind, fields }: Selection, account: Account): Promise<Preview & { text: string }> {
  const reply = await account.call("POST", "/v1/events/replays/preview", { kind, ...fields });
  if (reply.status !== 200) throw refusalOf(account, reply, remedyFor(reply));
  return { payloadsErased: 0, ...(reply.json as Pick<Preview, "selected"> & Partial<Preview>), text: reply.text };
}

function receiverWords(kind: Selection["kind"], { webhook, code, status }: Filtering): string {
  if (webhook !== undefined) return `to ${webhookWords(String(webhook))} alone`;
  if (code !== undefined || status !== undefined) return "to the webhooks where they failed so";
  return kind === "failed" ? "to the webhooks that have not acknowledged them" : "to every webhook";
}

/** @throws StartupError when nobody can be asked */
async function isConfirmed(selected: number, { kind, fields }: Selection, io: Io): Promise<boolean> {
  const question = `This delivers ${counted(selected, "event")} again, ${receiverWords(kind, fields)}. Continue? [y/N] `;
  const answer = await confirm(question, io);
  if (answer !== null) return answer;
  throw new StartupError(
    `${counted(selected, "event")} match, and a replay of more than ${mostUnconfirmed} needs confirmation. Try: --yes`,
  );
}

const doubt = "The replay may have started. Try: postrider replay list";

/** @returns the replay's id */
async function start({ selection, label }: StartOptions, account: Account, io: Io): Promise<string> {
  const { kind, fields } = selection;
  const body = { replayGroupId: label, ...fields };
  try {
    const reply = await account.callOnce("POST", `/v1/events/replays/${kind}`, body, doubt);
    if (textIn(reply.json, "code") === "event_not_selected") throw neverHad(fields);
    if (reply.status !== 202) throw refusalOf(account, reply, remedyFor(reply));
    const id = reply.location?.split("/").at(-1) ?? "";
    io.err(`${id} has started, with the label ${plainText(label)}.`);
    return id;
  } catch (error) {
    if (error instanceof Interrupted) io.err(doubt);
    throw error;
  }
}

/** The only filter of a replay of one event is its webhook. */
const neverHad = ({ eventId }: Filtering) =>
  new StartupError(
    `That webhook never had ${eventId}. Try: postrider replay event ${eventId}, which goes to every webhook that takes its type.`,
  );

const remedies: Readonly<Record<string, string>> = {
  event_not_found: "postrider events list",
  too_many_replays: "postrider replay list",
};

function remedyFor({ status, json }: Reply): string | undefined {
  return remedies[textIn(json, "code") ?? ""] ?? (status === 400 ? "postrider help replay" : undefined);
}
