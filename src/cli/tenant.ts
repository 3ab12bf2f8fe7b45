import { readValues } from "../config.ts";
import { UsageError } from "../domain/errors.ts";
import { tiersAscending } from "../domain/plans.ts";
import { nearest } from "../lib/nearest.ts";
import { largestLimits } from "../operator/limits.ts";
import type { Flag } from "./arguments.ts";
import { type Command, dataDirFlag, jsonFlag } from "./command.ts";
import { confirm } from "./confirmation.ts";
import { idInPath } from "./id-in-path.ts";
import { exitCode, type Io } from "./io.ts";
import { createOperatorClient, type OperatorClient } from "./operator-client.ts";
import { createStyle } from "./style.ts";
import { emptyPage, formatPairs, formatTable, plainText } from "./table.ts";

/** `postrider tenant …`: how the operator manages accounts, through the running server, so that its caches stay valid. */

type Fields = Readonly<Record<string, unknown>>;

interface Invocation {
  client: OperatorClient;
  /** The path of the named tenant, or of all tenants. */
  path: string;
  operands: readonly string[];
  flags: ReadonlyMap<string, string>;
  io: Io;
  /** Prints JSON for programs, otherwise whatever `forPeople` makes of it. */
  print(value: unknown, forPeople: () => string): void;
}

interface Verb {
  verb: string;
  operands?: readonly string[];
  flags?: readonly Flag[];
  summary: string;
  /** Runs before any server is contacted. @throws UsageError */
  check?(given: Pick<Invocation, "operands" | "flags">): void;
  run(invocation: Invocation): Promise<number>;
}

const allTenants = "/operator/tenants";

const tierFlag: Flag = {
  name: "--tier",
  value: "TIER",
  choices: tiersAscending,
  doc: `One of ${tiersAscending.join(", ")}; free by default.`,
};
const contactFlags: readonly Flag[] = [
  { name: "--name", value: "NAME", doc: "Display name; required above free." },
  { name: "--email", value: "ADDRESS", doc: "Contact address; required above free, where it is also the login." },
];
const pageFlag: Flag = { name: "--page", value: "N", doc: "Page to show, from 0." };
const sizeFlag: Flag = { name: "--size", value: "N", doc: "Accounts on a page, 1 to 1000; 20 by default." };

/** The limits of an account, by request field. */
const limits: Readonly<
  Record<keyof typeof largestLimits, { name: string; example: number; doc: string; byDefault?: string }>
> = {
  events_per_month: { name: "--events", example: 50_000, doc: "Events the account may send per month" },
  webhooks: { name: "--webhooks", example: 10, doc: `Webhooks the account may have, up to ${largestLimits.webhooks}` },
  retention_days: {
    ...{ name: "--retention-days", example: 90, doc: "Days that its events are kept, 0 for ever" },
    byDefault: "restores the server's setting",
  },
  retention_payloads_days: {
    ...{ name: "--payload-days", example: 30, doc: "Days that its payloads are kept, 0 as long as the events" },
    byDefault: "restores the server's setting",
  },
  storage_bytes: {
    ...{ name: "--storage", example: 5_000_000_000, doc: "Bytes that its events may take" },
    byDefault: "removes the limit",
  },
};

const limitFlags: readonly Flag[] = Object.values(limits).map(
  ({ name, doc, byDefault = "restores what its tier includes" }) => ({
    name,
    value: "N",
    doc: `${doc}; \`default\` ${byDefault}.`,
  }),
);

/** @throws UsageError */
function limitsIn(flags: Invocation["flags"]): Fields {
  const fields = Object.keys(limits) as (keyof typeof limits)[];
  const named = fields.flatMap((field): [string, number | null][] => {
    const { name, example } = limits[field];
    const given = flags.get(name);
    if (given === undefined) return [];
    if (given === "default") return [[field, null]];
    const most = largestLimits[field];
    if (!/^\d+$/.test(given) || Number(given) > most)
      throw new UsageError(`${name} must be a whole number from 0 to ${most}, or default. Try: ${name} ${example}`);
    return [[field, Number(given)]];
  });
  if (named.length > 0) return Object.fromEntries(named);
  throw new UsageError(`set-limits needs a limit. Try: ${limitFlags.map(({ name }) => name).join(" N or ")} N`);
}

const verbs: readonly Verb[] = [
  {
    verb: "create",
    flags: [tierFlag, ...contactFlags],
    summary: "Create an account; its password is shown once",
    check({ flags }) {
      const tier = flags.get("--tier") ?? "free";
      checkTier(tier);
      for (const { name, value } of tier === "free" ? [] : contactFlags) {
        if (!flags.has(name)) throw new UsageError(`The tier ${tier} needs ${name}. Try: ${name} ${value}`);
      }
    },
    async run({ client, path, flags, print, io }) {
      const body = {
        ...(flags.has("--tier") && { tier: flags.get("--tier") }),
        ...(flags.has("--name") && { name: flags.get("--name") }),
        ...(flags.has("--email") && { email: flags.get("--email") }),
      };
      const created = (await client.send("POST", path, body)) as Fields;
      print(created, () => `${pairs(created, io)}\n\nThe password is not shown again.`);
      return exitCode.ok;
    },
  },
  {
    verb: "list",
    flags: [pageFlag, sizeFlag],
    summary: "List the accounts, newest first",
    async run({ client, path, flags, print, io }) {
      const query = new URLSearchParams();
      if (flags.has("--page")) query.set("page", flags.get("--page") ?? "");
      if (flags.has("--size")) query.set("size", flags.get("--size") ?? "");
      const list = (await client.send("GET", `${path}?${query}`)) as { tenants: Fields[]; total: number };
      print(list, () => tenantTable(list, io));
      return exitCode.ok;
    },
  },
  forOne("show", "Show an account", "GET", ""),
  {
    verb: "set-tier",
    operands: ["ID", "TIER"],
    summary: `Set the tier of an account (${tiersAscending.join(", ")}), effective at once`,
    check: ({ operands: [, tier = ""] }) => checkTier(tier),
    async run({ client, path, operands: [, tier], print, io }) {
      const changed = (await client.send("PUT", `${path}/tier`, { tier })) as Fields;
      print(changed, () => pairs(changed, io));
      return exitCode.ok;
    },
  },
  {
    verb: "set-limits",
    operands: ["ID"],
    flags: limitFlags,
    summary: "Set the quota, webhooks, retention and storage of an account, whatever its tier",
    check: ({ flags }) => void limitsIn(flags),
    async run({ client, path, flags, print, io }) {
      const changed = (await client.send("PUT", `${path}/limits`, limitsIn(flags))) as Fields;
      print(changed, () => pairs(changed, io));
      return exitCode.ok;
    },
  },
  {
    verb: "suspend",
    operands: ["ID"],
    flags: [{ name: "--reason", value: "TEXT", doc: "Why; the account reads it under Activity." }],
    summary: "Suspend an account: its events are refused and its deliveries pause",
    async run({ client, path, flags, print, io }) {
      const body = flags.has("--reason") ? { reason: flags.get("--reason") } : undefined;
      const changed = (await client.send("POST", `${path}/suspend`, body)) as Fields;
      print(changed, () => pairs(changed, io));
      return exitCode.ok;
    },
  },
  forOne("resume", "End the operator's suspension of an account", "POST", "/resume"),
  {
    verb: "reset-password",
    operands: ["ID"],
    flags: [
      { name: "--end-keys", doc: "Also revoke its API keys and signing secret at once. On a terminal, you are asked." },
      { name: "--keep-keys", doc: "Keep them, and do not ask." },
    ],
    summary: "Give an account a new password; ends its sessions and, if wanted, its keys",
    check({ flags }) {
      if (flags.has("--end-keys") && flags.has("--keep-keys"))
        throw new UsageError("--end-keys and --keep-keys cannot be combined. Try: one of them");
    },
    async run({ client, path, operands: [id = ""], flags, print, io }) {
      const endKeys = flags.has("--end-keys") || (!flags.has("--keep-keys") && (await wantsKeysEnded(id, io)));
      const answer = (await client.send("POST", `${path}/reset-password`, { end_keys: endKeys })) as Fields;
      print(answer, () => `${pairs(answer, io)}\n\n${endKeys ? keysEnded : keysKept}`);
      return exitCode.ok;
    },
  },
  {
    verb: "delete",
    operands: ["ID"],
    flags: [{ name: "--yes", doc: "Do not ask for confirmation. Required without a terminal." }],
    summary: "Delete an account and all its data; this cannot be undone",
    async run({ client, path, operands: [id = ""], flags, print, io }) {
      const tenant = (await client.send("GET", path)) as Fields;
      if (!flags.has("--yes") && !(await isConfirmed(id, tenant, io))) return exitCode.failed;
      await client.send("DELETE", path);
      print({ tenant_id: id, deleted: true }, () => `${id} is deleted.`);
      return exitCode.ok;
    },
  },
];

export const tenantCommands: readonly Command[] = verbs.map(
  ({ verb, operands: operandNames = [], flags: ownFlags = [], summary, check, run }) => ({
    words: ["tenant", verb],
    operands: operandNames,
    operandChoices: { TIER: tiersAscending },
    flags: [...ownFlags, jsonFlag, dataDirFlag],
    summary,
    async run({ operands, flags }, io) {
      check?.({ operands, flags });
      const [id] = operands;
      const path = id === undefined ? allTenants : `${allTenants}/${idInPath(id, "postrider tenant list")}`;
      const { dataDir } = readValues(io.env, flags);
      return run({
        client: createOperatorClient(dataDir),
        path,
        operands,
        flags,
        io,
        print: (value, forPeople) => io.out(flags.has("--json") ? JSON.stringify(value) : forPeople()),
      });
    },
  }),
);

/** A verb that makes one request about one account, and shows the answer. */
function forOne(verb: string, summary: string, method: string, suffix: string): Verb {
  return {
    verb,
    operands: ["ID"],
    summary,
    async run({ client, path, print, io }) {
      const answer = (await client.send(method, `${path}${suffix}`)) as Fields;
      print(answer, () => pairs(answer, io));
      return exitCode.ok;
    },
  };
}

const keysEnded =
  "Its sessions, API keys and signing secret were revoked. The account finds the new ones when it signs in; its events\nare refused until its sender has the new key.";
const keysKept = "Its sessions were revoked. Its API keys and signing secret still work; --end-keys revokes them too.";

/** Asks only where somebody can answer: a script that does not say so keeps the keys. */
async function wantsKeysEnded(id: string, io: Io): Promise<boolean> {
  if (!io.isTerminal) return false;
  const question = `Also revoke the API keys and signing secret of ${id}? Its senders are refused until they have the new key. [y/N] `;
  return (await confirm(question, io)) ?? false;
}

function checkTier(given: string): void {
  if (tiersAscending.some((tier) => tier === given)) return;
  throw new UsageError(`"${given}" is not a tier. Try: ${nearest(given, tiersAscending) ?? tiersAscending.join(", ")}`);
}

async function isConfirmed(id: string, tenant: Fields, io: Io): Promise<boolean> {
  const name = plainText(String(tenant.tenant_name));
  const answer = await io.ask(`This deletes ${id} (${name}) with all its events. Type the id to confirm: `);
  if (answer?.trim() === id) return true;
  io.err(
    answer === null
      ? "Nothing was deleted: this needs confirmation. Try: --yes"
      : "Nothing was deleted: the id does not match.",
  );
  return false;
}

function pairs(fields: Fields, io: Io): string {
  return formatPairs(
    Object.entries(fields).map(([name, value]) => [name, cell(value)]),
    createStyle(io),
  );
}

function tenantTable({ tenants, total }: { tenants: readonly Fields[]; total: number }, io: Io): string {
  if (tenants.length === 0) return emptyPage(total, "There are no accounts yet.");
  const columns = ["tenant_id", "tier", "status", "created_at", "email", "tenant_name"];
  const rows = tenants.map((tenant) => columns.map((column) => cell(tenant[column])));
  const style = createStyle(io);
  return `${formatTable(columns, rows, style)}\n${style.faint(`${tenants.length} of ${total}`)}`;
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "object" && !Array.isArray(value))
    return Object.entries(value)
      .map(([name, one]) => `${name} ${cell(one)}`)
      .join(", ");
  if (Array.isArray(value)) return value.length === 0 ? "–" : value.map(cell).join(", ");
  return plainText(String(value));
}
