import { systemClock } from "../../lib/clock.ts";
import type { Flag } from "../arguments.ts";
import { type Account, withAccount } from "../client/account.ts";
import { refusalOf } from "../client/answer.ts";
import { ifFound } from "../client/if-found.ts";
import { clientFlags, signInDetails } from "../client/sign-in.ts";
import { type Command, jsonFlag } from "../command.ts";
import { counted } from "../count.ts";
import { exitCode, type Io } from "../io.ts";
import { createStyle } from "../style.ts";
import { emptyPage, formatPairs, formatTable, plainText } from "../table.ts";
import { webhookWords } from "../webhook-words.ts";
import { cancelReplay, followReplay, readReplay } from "./follow.ts";
import { outcomeWords, type ReplayRow, summaryOf } from "./progress.ts";
import { explainSkipped, waitingHints } from "./reach.ts";
import { bulkFlags, readStartOptions, replay, type Selection, singleFlags } from "./start.ts";

/** `postrider replay …`: delivers stored events again, and shows what has become of replays. */

/** A verb that starts a replay. */
interface Start {
  verb: string;
  operands?: readonly string[];
  flags: readonly Flag[];
  summary: string;
  /** Where its events go. */
  receivers: string;
  /** What to replay, before filters are applied. */
  select(operands: readonly string[]): Selection;
}

const starts: readonly Start[] = [
  {
    verb: "event",
    operands: ["ID"],
    flags: singleFlags,
    summary: "Deliver one event again, to every webhook or to one",
    receivers: "It goes to every webhook that takes its type, also to those that have acknowledged it.",
    select: ([eventId = ""]) => ({ kind: "single", fields: { eventId } }),
  },
  {
    verb: "failed",
    flags: bulkFlags,
    summary: "Redeliver failed events, all of them or those that match the filters",
    receivers: `Events go to the webhooks that have not acknowledged them. All filters that are given must
match.`,
    select: () => ({ kind: "failed", fields: {} }),
  },
  {
    verb: "all",
    flags: bulkFlags,
    summary: "Redeliver all events, or those that match the filters",
    receivers: `Events go to every webhook that takes their type, also to those that have acknowledged
them. All filters that are given must match.`,
    select: () => ({ kind: "all", fields: {} }),
  },
];

function startCommand({ verb, operands: names = [], flags: ownFlags, summary, receivers, select }: Start): Command {
  return {
    words: ["replay", verb],
    operands: names,
    flags: [...ownFlags, ...clientFlags],
    summary,
    details: `${receivers}
Shows the progress until every delivery has ended, which retries can delay by hours; Ctrl+C
leaves the replay running and prints its id. Exit code 0: all were acknowledged. 1: some
failed, have no webhook or were overtaken by a later replay, or the replay was refused or
cancelled. With --detach, 0: it was accepted.
${signInDetails}`,
    async run({ operands, flags }, io) {
      const options = readStartOptions(select(operands), flags, systemClock.now());
      return withAccount({ io, clock: systemClock, flags }, (account) => replay(options, account, io, systemClock));
    },
  };
}

/** A verb about existing replays. */
interface Question {
  verb: string;
  operands?: readonly string[];
  flags: readonly Flag[];
  summary: string;
  run(invocation: Invocation): Promise<number>;
}

interface Invocation {
  account: Account;
  operands: readonly string[];
  flags: ReadonlyMap<string, string>;
  io: Io;
}

const pageFlags: readonly Flag[] = [
  { name: "--page", value: "N", doc: "Page to show, from 0." },
  { name: "--size", value: "N", doc: "Replays on a page, 1 to 1000; 20 by default." },
];

const answerFlag: Flag = { ...jsonFlag, doc: "Print the server's answer, one JSON object." };

const questions: readonly Question[] = [
  {
    verb: "list",
    flags: [...pageFlags, answerFlag],
    summary: "List replays and what became of them, newest first",
    async run({ account, flags, io }) {
      const query = new URLSearchParams();
      for (const { name } of pageFlags) if (flags.has(name)) query.set(name.slice(2), flags.get(name) ?? "");
      const reply = await account.call("GET", `/v1/events/replays?${query}`);
      if (reply.status !== 200) throw refusalOf(account, reply, "postrider help replay list");
      const list = reply.json as { replays: readonly ReplayRow[]; total: number };
      io.out(flags.has("--json") ? reply.text : replayTable(list, io));
      return exitCode.ok;
    },
  },
  {
    verb: "show",
    operands: ["ID"],
    flags: [
      { name: "--follow", doc: "Show the progress until every delivery has ended, as when it was started." },
      answerFlag,
    ],
    summary: "Show how far a replay is",
    async run({ account, operands: [id = ""], flags, io }) {
      const json = flags.has("--json");
      if (flags.has("--follow")) return followReplay(id, account, { io, clock: systemClock, json });
      const reply = await readReplay(id, account.call, account);
      const found = reply.json as ReplayRow;
      const skipped = await ifFound(explainSkipped(found, undefined, account));
      io.out(json ? reply.text : replayPairs(found, skipped?.why, io));
      for (const hint of (await ifFound(waitingHints(found, account))) ?? []) io.err(hint);
      for (const hint of skipped?.hints ?? []) io.err(hint);
      return exitCode.ok;
    },
  },
  {
    verb: "cancel",
    operands: ["ID"],
    flags: [answerFlag],
    summary: "Cancel what a replay has not sent yet",
    async run({ account, operands: [id = ""], flags, io }) {
      const reply = await cancelReplay(id, account, systemClock);
      const replay = reply.json as ReplayRow;
      io.out(flags.has("--json") ? reply.text : summaryOf(replay, createStyle(io)));
      if (replay.status === "completed") io.err(`${id} had already completed; there was nothing to cancel.`);
      return exitCode.ok;
    },
  },
];

const questionCommand = ({ verb, operands: names = [], flags: ownFlags, summary, run }: Question): Command => ({
  words: ["replay", verb],
  operands: names,
  flags: [...ownFlags, ...clientFlags],
  summary,
  details: signInDetails,
  run: ({ operands, flags }, io) =>
    withAccount({ io, clock: systemClock, flags }, (account) => run({ account, operands, flags, io })),
});

function replayTable({ replays, total }: { replays: readonly ReplayRow[]; total: number }, io: Io): string {
  if (replays.length === 0) return emptyPage(total, "Nothing was replayed yet.");
  const style = createStyle(io);
  const head = [
    "started",
    "status",
    "kind",
    "events",
    "delivered",
    "failed",
    "overtaken",
    "skipped",
    "replay",
    "label",
  ];
  const rows = replays.map((each) => [
    each.createdAt,
    each.status,
    each.kind,
    String(each.selected),
    String(each.delivered),
    String(each.failed),
    String(each.superseded),
    String(each.skipped),
    each.id,
    plainText(each.replayGroupId),
  ]);
  const failedColumn = head.indexOf("failed");
  const mark = (cell: string, column: number) => (column === failedColumn && cell !== "0" ? style.bad(cell) : cell);
  return `${formatTable(head, rows, style, mark)}\n${style.faint(`${counted(replays.length, "replay")} of ${total}.`)}`;
}

function replayPairs(found: ReplayRow, why: string | undefined, io: Io): string {
  const style = createStyle(io);
  return formatPairs(
    [
      ["replay", style.bold(found.id)],
      ["kind", found.kind],
      ["label", plainText(found.replayGroupId)],
      ...Object.entries(found.filter ?? {}).map(([name, value]) => [name, filterWords(name, value)] as const),
      ["status", found.status],
      ["events", String(found.selected)],
      ["deliveries", outcomeWords(found, style, why)],
      ["started", found.createdAt],
      ["ended", found.completedAt ?? "–"],
    ],
    style,
  );
}

const filterWords = (name: string, value: string | number): string =>
  name === "webhook" ? webhookWords(String(value)) : plainText(String(value));

export const replayCommands: readonly Command[] = [...starts.map(startCommand), ...questions.map(questionCommand)];
