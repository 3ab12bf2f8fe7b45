import { readValues } from "../../config.ts";
import { auditActions } from "../../domain/audit.ts";
import { UsageError } from "../../domain/errors.ts";
import { systemClock } from "../../lib/clock.ts";
import { nearest } from "../../lib/nearest.ts";
import type { Flag } from "../arguments.ts";
import { readMoment } from "../client/filters.ts";
import { type Command, dataDirFlag, jsonFlag } from "../command.ts";
import { count } from "../count.ts";
import { exitCode, type Io } from "../io.ts";
import { createOperatorClient } from "../operator-client.ts";
import { createStyle } from "../style.ts";
import { emptyPage, formatTable, plainText } from "../table.ts";

interface ListedEntry {
  readonly tenant_id: string | null;
  readonly action: string;
  readonly by: string;
  readonly via: string | null;
  readonly address: string | null;
  readonly times: number;
  readonly at: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

interface AuditPage {
  readonly entries: readonly ListedEntry[];
  readonly total: number;
  readonly total_is_exact: boolean;
}

const queryFlags: readonly Flag[] = [
  { name: "--tenant", value: "ID", doc: "Entries about this account, even if it has been deleted." },
  {
    ...{ name: "--action", value: "ACTION", choices: auditActions },
    doc: `This action alone. One of ${auditActions.join(", ")}.`,
  },
  { name: "--from", value: "WHEN", doc: "From then on: `2d` ago, or a time such as 2026-03-01T12:00Z." },
  { name: "--to", value: "WHEN", doc: "Until then, inclusive." },
  { name: "--page", value: "N", doc: "Page to show, from 0." },
  { name: "--size", value: "N", doc: "Entries on a page, 1 to 1000; 50 by default." },
];

/** `postrider audit`: who did what on the data directory's server, newest first. */
export const auditCommand: Command = {
  words: ["audit"],
  operands: [],
  flags: [...queryFlags, jsonFlag, dataDirFlag],
  summary: "List who did what, with which account, and from where",
  details: `Logins and failed ones, new keys and passwords, changes of webhooks, replays, and what
the operator did. Entries are kept for a year. Those of a deleted account are
erased with it; what the operator did with it stays.`,
  async run({ flags }, io) {
    const query = queryOf(flags, systemClock.now());
    const { dataDir } = readValues(io.env, flags);
    const answer = (await createOperatorClient(dataDir).send("GET", `/operator/audit?${query}`)) as AuditPage;
    io.out(flags.has("--json") ? JSON.stringify(answer) : forPeople(answer, io));
    return exitCode.ok;
  },
};

/** The API's filters are named like the flags. */
function queryOf(flags: ReadonlyMap<string, string>, now: number): URLSearchParams {
  const query = new URLSearchParams();
  for (const { name } of queryFlags) {
    const text = flags.get(name);
    if (text === undefined) continue;
    if (name === "--action" && !auditActions.some((action) => action === text)) {
      const remedy = nearest(text, auditActions) ?? "postrider help audit, which lists them";
      throw new UsageError(`"${text}" is not an action. Try: ${remedy}`);
    }
    if (name === "--from" || name === "--to") {
      query.set(name.slice(2), readMoment(text, name === "--from" ? "start" : "end", name, now));
    } else query.set(name.slice(2), text);
  }
  return query;
}

const columns = ["at", "account", "action", "by", "address", "detail"];

function forPeople({ entries, total, total_is_exact }: AuditPage, io: Io): string {
  const style = createStyle(io);
  if (entries.length === 0) return emptyPage(total, "No entries match.");
  const of = total_is_exact ? count(total) : `more than ${count(total)}`;
  return `${formatTable(columns, entries.map(row), style)}\n${style.faint(`${count(entries.length)} of ${of}.`)}`;
}

const row = ({ at, tenant_id, action, times, by, via, address, detail }: ListedEntry): string[] => [
  at,
  tenant_id ?? "–",
  times === 1 ? action : `${action} ×${count(times)}`,
  plainText(via ?? by),
  address ?? "–",
  plainText(detailWords(detail)),
];

const detailWords = (detail: ListedEntry["detail"]): string =>
  Object.entries(detail)
    .map(([name, value]) => `${name}: ${Array.isArray(value) ? value.join(", ") : String(value)}`)
    .join("; ");
