import { StartupError } from "../../domain/errors.ts";
import { systemClock } from "../../lib/clock.ts";
import type { Flag } from "../arguments.ts";
import { type Account, withAccount } from "../client/account.ts";
import { refusalOf } from "../client/answer.ts";
import { clientFlags, signInDetails } from "../client/sign-in.ts";
import {
  type Registered,
  readWebhookSettings,
  readWebhooks,
  stateHint,
  unknownWebhook,
  type WebhookRow,
  webhookMeant,
} from "../client/webhook.ts";
import { type Command, jsonFlag } from "../command.ts";
import { confirm } from "../confirmation.ts";
import { exitCode, type Io } from "../io.ts";
import { createStyle } from "../style.ts";
import { webhookWords } from "../webhook-words.ts";
import { changeList, readFailures, readHealth } from "./api.ts";
import { withAdded, withoutOne, withPaused } from "./change.ts";
import { isAcknowledged, type TestAttemptRow, testPairs, webhookTable } from "./words.ts";

/** `postrider webhooks …`: where an account's events go. */

interface Invocation {
  account: Account;
  operand: string;
  flags: ReadonlyMap<string, string>;
  io: Io;
}

interface Verb {
  verb: string;
  isDefault?: true;
  operands?: readonly string[];
  flags: readonly Flag[];
  summary: string;
  details: string;
  run(invocation: Invocation): Promise<number>;
}

const oneOperand = ["ID|URL"];

const jsonOfOne: Flag = { ...jsonFlag, doc: "Print the webhook with all its settings, one JSON object." };

const verbs: readonly Verb[] = [
  {
    verb: "list",
    isDefault: true,
    flags: [{ ...jsonFlag, doc: "Print the server's list with all settings, one JSON array." }],
    summary: "List the webhooks, their states, and how the latest deliveries went",
    details: "The verb can be left out: `postrider webhooks`.",
    async run({ account, flags, io }) {
      const { text, webhooks } = await readWebhookSettings(account);
      if (flags.has("--json")) io.out(text);
      else {
        const [health, failures] = await Promise.all([readHealth(account), readFailures(account)]);
        io.out(webhookTable(webhooks, health, failures, createStyle(io)));
      }
      return exitCode.ok;
    },
  },
  {
    verb: "add",
    operands: ["URL"],
    flags: [
      { name: "--name", value: "NAME", doc: "A label for it." },
      {
        name: "--type",
        value: "TYPES",
        doc: "Event types that it takes, separated by commas: order.paid, or order.* for all that begin that way. Every event by default.",
      },
      jsonOfOne,
    ],
    summary: "Add a webhook, and print its id",
    details: "The other webhooks stay as they are, whoever changes them at the same moment.",
    async run({ account, operand: url, flags, io }) {
      const [name, types] = [flags.get("--name"), flags.get("--type")];
      const added = {
        webhook_url: url,
        ...(name !== undefined && { name }),
        ...(types !== undefined && { event_types: types.split(",").map((type) => type.trim()) }),
      };
      await changeList(account, (listed) => withAdded(listed, added));
      const webhook = await readChanged((each) => each.url === url, account);
      io.out(flags.has("--json") ? JSON.stringify(webhook) : webhook.id);
      io.err(`To send it a test event: postrider webhooks test ${webhook.id}`);
      return exitCode.ok;
    },
  },
  {
    verb: "remove",
    operands: oneOperand,
    flags: [{ name: "--yes", doc: "Do not ask for confirmation. Required without a terminal." }],
    summary: "Remove a webhook; what waits for it fails",
    details: `Its settings are forgotten, and deliveries that wait for it fail as webhook_removed;
adding the URL again does not revive them. An attempt in flight still counts.`,
    async run({ account, operand, flags, io }) {
      const webhook = await find(operand, account);
      if (!flags.has("--yes") && !(await isConfirmed(webhook, io))) {
        io.err("Nothing was removed.");
        return exitCode.failed;
      }
      await changeList(account, (listed) => withoutOne(listed, webhook));
      io.out(`${webhook.id} is removed.`);
      io.err("What waited for it fails. To see it: postrider events list --code webhook_removed");
      return exitCode.ok;
    },
  },
  {
    verb: "test",
    operands: oneOperand,
    flags: [{ ...jsonFlag, doc: "Print the attempt, one JSON object." }],
    summary: "Send a webhook a signed sample event, and show its answer",
    details: "Nothing is stored or retried. Exit code 0: it was acknowledged. 1: it was not.",
    async run({ account, operand, flags, io }) {
      const webhook = meant(operand, (await readWebhookSettings(account)).webhooks);
      // Repeated even if it may have arrived: a second sample does no harm.
      const reply = await account.call("POST", `/v1/tenants/webhooks/${webhook.id}/test`);
      if (reply.status !== 200) throw refusalOf(account, reply);
      const attempt = reply.json as TestAttemptRow;
      io.out(flags.has("--json") ? reply.text : testPairs(attempt, createStyle(io)));
      // Only a test is sent to it.
      const hint = stateHint(webhook);
      if (hint !== null) io.err(hint);
      return isAcknowledged(attempt) ? exitCode.ok : exitCode.failed;
    },
  },
  pausing("pause", true, {
    summary: "Pause a webhook: its deliveries wait",
    details: "What arrives meanwhile waits, too; a test is sent. `postrider webhooks resume` ends it.",
  }),
  pausing("resume", false, {
    summary: "Resume a paused webhook: what has waited goes out, oldest first",
    details: "One that is also disabled stays so; `postrider webhooks enable` ends that.",
  }),
  {
    verb: "enable",
    operands: oneOperand,
    flags: [jsonOfOne],
    summary: "Enable a webhook that was disabled because it failed",
    details: "Nothing that has failed is sent again; `postrider replay failed` does that.",
    async run({ account, operand, flags, io }) {
      const webhook = await find(operand, account);
      const reply = await account.call("POST", `/v1/tenants/webhooks/${webhook.id}/enable`);
      if (reply.status !== 200) throw refusalOf(account, reply);
      return printState(reply.json as WebhookRow, flags, io);
    },
  },
];

function pausing(verb: string, paused: boolean, words: Pick<Verb, "summary" | "details">): Verb {
  return {
    verb,
    operands: oneOperand,
    flags: [jsonOfOne],
    ...words,
    async run({ account, operand, flags, io }) {
      const webhook = await find(operand, account);
      await changeList(account, (listed) => withPaused(listed, webhook, paused));
      return printState(await readChanged(({ id }) => id === webhook.id, account), flags, io);
    },
  };
}

const find = async (typed: string, account: Account): Promise<Registered> => meant(typed, await readWebhooks(account));

function meant<Row extends Registered>(typed: string, listed: readonly Row[]): Row {
  const webhook = webhookMeant(typed, listed, "");
  if (webhook) return webhook;
  throw unknownWebhook(typed, listed, "");
}

/** What has become of the webhook that the list was changed for. */
async function readChanged(isMeant: (webhook: WebhookRow) => boolean, account: Account): Promise<WebhookRow> {
  const found = (await readWebhookSettings(account)).webhooks.find(isMeant);
  if (found) return found;
  throw new StartupError(
    "Somebody else has just replaced the list, without this webhook. Try: postrider webhooks list",
  );
}

/** As the server has it: one that is resumed may also be disabled. */
function printState(webhook: WebhookRow, flags: Invocation["flags"], io: Io): number {
  io.out(flags.has("--json") ? JSON.stringify(webhook) : `${webhook.id} is ${webhook.state}.`);
  return exitCode.ok;
}

/** @throws StartupError when nobody can be asked */
async function isConfirmed({ id, url }: Registered, io: Io): Promise<boolean> {
  const question = `This removes ${id} (${webhookWords(url)}) with its settings, and what waits for it fails. Continue? [y/N] `;
  const answer = await confirm(question, io);
  if (answer !== null) return answer;
  throw new StartupError("Removing a webhook needs confirmation. Try: --yes");
}

export const webhookCommands: readonly Command[] = verbs.map(
  ({ verb, isDefault = false, operands: names = [], flags: ownFlags, summary, details, run }) => ({
    words: ["webhooks", verb],
    isDefault,
    operands: names,
    flags: [...ownFlags, ...clientFlags],
    summary,
    details: `${details}\n${signInDetails}`,
    run: ({ operands: [operand = ""], flags }, io) =>
      withAccount({ io, clock: systemClock, flags }, (account) => run({ account, operand, flags, io })),
  }),
);
