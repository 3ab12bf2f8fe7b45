import type { MailFact, MailKind, MailState } from "../domain/mail.ts";
import { formatIso } from "../lib/iso-time.ts";

export interface Letter {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

/** What a letter is made of; its plain text and its HTML are both made from this. */
interface Draft {
  readonly subject: string;
  /** Paragraphs; an array is a list. */
  readonly body: readonly (string | readonly string[])[];
  readonly link?: { readonly url: string; readonly label: string };
  readonly after?: string;
  /** Why the reader is getting it. */
  readonly because: string;
}

export interface LetterContext {
  /** Base of the server's URLs. */
  readonly baseUrl: string;
}

type Words = (facts: readonly MailFact[], context: LetterContext & { host: string }) => Draft;

/** `2026-03-01 12:34 UTC` */
const timeOf = (ms: unknown): string => formatIso(Number(ms)).slice(0, 16).replace("T", " ").concat(" UTC");

/** For what was so at a time. Facts that earlier versions queued may have none. */
const dated = ({ at }: MailFact, sentence: string): string =>
  at === undefined ? sentence : `${timeOf(at)}: ${sentence}`;

/** A name is whatever its owner wrote, on a single line here: paragraphs of a stranger's would pass for ours. */
const onOneLine = (name: unknown): string =>
  String(name)
    .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim();

const accountOf = ({ tenantName, tenantId }: MailFact): string => `${onOneLine(tenantName)} (${tenantId})`;

/** `Shop (wh_1 at shop.example) of Ada (t1)`, or without a name `wh_1 at shop.example of Ada (t1)`. */
function webhookOf(fact: MailFact): string {
  const name = onOneLine(fact.webhookName);
  const place = `${fact.webhookId} at ${fact.webhookHost}`;
  return `${name === "" ? place : `${name} (${place})`} of ${accountOf(fact)}`;
}

const isContact = (host: string) =>
  `You get this because your address is the contact of an account at ${host}. At most one mail of this kind is sent in an hour.`;
const isOperator = (host: string) =>
  `You get this because POSTRIDER_OPERATOR_MAIL names you at ${host}. At most one mail of this kind is sent in an hour.`;

const gib = (bytes: unknown): string => `${(Number(bytes) / 2 ** 30).toFixed(1)} GiB`;

const webhooks =
  (one: string, many: (n: number) => string, line: (fact: MailFact) => string, end: string): Words =>
  (facts, { baseUrl, host }) => ({
    subject: facts.length === 1 ? `${one}: ${facts[0]?.webhookHost}` : many(facts.length),
    body: [facts.map(line), end],
    link: { url: `${baseUrl}/webhooks`, label: "Look at your webhooks" },
    because: isContact(host),
  });

const newPassword: Words = ([fact = {}], { baseUrl, host }) => ({
  subject: "Set a new password for Postrider",
  body: [
    // By its id alone: anybody can have this sent to anybody, from an account with a name of their choice.
    `Somebody asked for a new password for the account ${fact.tenantId} at ${host}.`,
    "If it was you, open this link within an hour. It works once.",
  ],
  link: { url: `${baseUrl}/new-password#${fact.token}`, label: "Set a new password" },
  after: "If it was not you, there is nothing to do: the password stays as it is.",
  because: isContact(host),
});

const letters: Readonly<Record<MailKind, Words>> = {
  "password.reset": newPassword,
  "password.reset_by_contact": newPassword,
  "webhook.failing": webhooks(
    "A webhook keeps failing",
    (n) => `${n} webhooks keep failing`,
    (fact) =>
      `${webhookOf(fact)} has failed since ${timeOf(fact.failingSince)}.${
        fact.disablesAt === null ? "" : ` If that goes on, it will be disabled on ${timeOf(fact.disablesAt)}.`
      }`,
    "Deliveries are retried on schedule. Once the receiver answers with a 2xx status again, all is well.",
  ),
  "webhook.disabled": webhooks(
    "A webhook was disabled",
    (n) => `${n} webhooks were disabled`,
    (fact) =>
      `${webhookOf(fact)}: ${
        fact.disabledAs === "gone"
          ? "it answered several deliveries in a row with 410 Gone."
          : `every attempt has failed since ${timeOf(fact.failingSince)}.`
      }`,
    "New events are not sent there. When the receiver works again, enable the webhook and replay what has failed.",
  ),
  "charge.failed": (facts, { baseUrl, host }) => ({
    subject: "A payment failed",
    body: [
      facts.map(
        (fact) =>
          `NGN ${(Number(fact.amountKobo) / 100).toFixed(2)} for ${accountOf(fact)}: ${fact.reason}. ${next(fact)}`,
      ),
      "Another card settles it: verify one on the page of your plan.",
    ],
    link: { url: `${baseUrl}/plan`, label: "Look at your plan" },
    because: isContact(host),
  }),
  "backup.failed": (facts, { host }) => ({
    subject: `A backup failed: ${host}`,
    body: [
      facts.map(
        (fact) =>
          `${timeOf(fact.at)}: ${fact.kind === "verify" ? "the verification of a backup failed" : "a backup failed"}. ${fact.error}`,
      ),
      "Earlier backups are as they were. Once the cause is gone, make one by hand and verify it: postrider backup --verify.",
    ],
    because: isOperator(host),
  }),
  "disk.low": ([fact = {}], { host }) => ({
    subject: `Disk almost full: ${host}`,
    body: [
      dated(
        fact,
        `${host} has ${gib(fact.freeBytes)} left on the disk of its database, which is below the floor of ${gib(fact.floorBytes)} ` +
          "(POSTRIDER_MIN_FREE_DISK). It accepts no events until there is room again; what is stored is still delivered.",
      ),
      "Free some space, enlarge the disk, or shorten retention (POSTRIDER_RETENTION).",
    ],
    because: isOperator(host),
  }),
  "queue.growing": ([fact = {}], { baseUrl, host }) => ({
    subject: `The queue is growing: ${host}`,
    body: [
      dated(
        fact,
        `${fact.waiting} deliveries wait at ${host}, and there have been more and more of them for ${fact.minutes} minutes.`,
      ),
      "Receivers that are down or slow are the usual reason; the log names them (webhook.failing). If they are healthy, the server cannot " +
        "keep up with the load.",
    ],
    link: { url: `${baseUrl}/operator`, label: "Open the operator's page" },
    because: isOperator(host),
  }),
};

function next({ retryAt, isSuspended }: MailFact): string {
  if (retryAt !== null) return `It is tried again on ${timeOf(retryAt)}.`;
  return isSuspended ? "The account is suspended until it is paid." : "";
}

export function writeLetter(kind: MailKind, { facts, leftOut }: MailState, context: LetterContext): Letter {
  const host = new URL(context.baseUrl).host;
  const { subject, body, link, after, because } = letters[kind](facts, { ...context, host });
  const more = leftOut === 0 ? [] : [`And ${leftOut} more.`];
  const paragraphs = [...body.slice(0, 1), ...more, ...body.slice(1)];
  return {
    subject,
    text: `${[
      ...paragraphs.map((one) => (typeof one === "string" ? one : one.map((item) => `- ${item}`).join("\n"))),
      ...(link ? [link.url] : []),
      ...(after ? [after] : []),
      `-- \n${because}`,
    ].join("\n\n")}\n`,
    html: page([
      ...paragraphs.map((one) =>
        typeof one === "string" ? p(one) : `<ul>${one.map((item) => `<li>${inHtml(item)}</li>`).join("")}</ul>`,
      ),
      ...(link ? [p(`<a href="${inHtml(link.url)}">${inHtml(link.label)}</a>`, false)] : []),
      ...(after ? [p(after)] : []),
      `<p style="color:#5b6472;font-size:13px">${inHtml(because)}</p>`,
    ]),
  };
}

const p = (text: string, isPlain = true): string => `<p>${isPlain ? inHtml(text) : text}</p>`;

/** One column no wider than a phone, and no image, style sheet or script. */
const page = (blocks: readonly string[]): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"></head>` +
  `<body style="margin:0;padding:16px;font:16px/1.5 system-ui,sans-serif;color:#1a1f29">` +
  `<div style="max-width:560px;margin:0 auto;overflow-wrap:anywhere">${blocks.join("")}</div></body></html>`;

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const inHtml = (text: string): string => text.replace(/[&<>"]/g, (char) => entities[char] ?? char);
