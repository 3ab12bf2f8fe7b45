import { takes } from "../../domain/event-types.ts";
import { shellWord } from "../../lib/shell-word.ts";
import type { Account } from "../client/account.ts";
import { refusalOf } from "../client/answer.ts";
import type { Filtering } from "../client/filters.ts";
import { readWebhookSettings, stateHint, type WebhookRow } from "../client/webhook.ts";
import type { EventPage, EventRow } from "../events/api.ts";
import { idInPath } from "../id-in-path.ts";
import { plainText } from "../table.ts";
import { type ReplayRow, waitingOf } from "./progress.ts";

/**
 * Which webhooks a replay concerns, and what keeps them from getting it (rules, section 10). The server counts events and
 * records, not webhooks, so they are found by the records that a replay selects.
 */

type Client = Pick<Account, "call" | "url">;

/** What a replay selects. The fields are its filters and, of a replay of one event, `eventId`. */
export interface Reach {
  readonly kind: string;
  readonly fields: Filtering;
}

/** The most that one request returns. */
const mostRead = 1_000;

interface Found {
  readonly records: readonly EventRow[];
  /** False: there may be more. */
  readonly areAll: boolean;
}

async function read(path: string, account: Client): Promise<unknown> {
  const reply = await account.call("GET", path);
  if (reply.status !== 200) throw refusalOf(account, reply);
  return reply.json;
}

async function readRecords(state: string | null, filters: Filtering, size: number, account: Client): Promise<Found> {
  const query = new URLSearchParams({ payload: "false", size: String(size) });
  for (const [name, value] of Object.entries(filters)) query.set(name, String(value));
  const list = await read(`/v1/events${state === null ? "" : `/state/${state}`}?${query}`, account);
  const { events, total, totalIsExact = true } = list as EventPage;
  return { records: events, areAll: totalIsExact && events.length === total };
}

const isNamed = ({ id, url }: WebhookRow, { webhook }: Filtering) => webhook === id || webhook === url;
const isDisabled = ({ state }: WebhookRow) => state === "disabled";

/** Whether it takes one kind of failure alone; then only webhooks where events failed so get them. */
const isNarrow = ({ code, status }: Filtering) => code !== undefined || status !== undefined;

// ---------------------------------------------------------------- before it starts

interface Concerned {
  readonly webhooks: readonly WebhookRow[];
  /** Whether no other webhook can get any of it. */
  readonly areAll: boolean;
  /** Some of it failed for webhooks that are removed, and goes to nobody. */
  readonly hasRemoved: boolean;
}

async function concernedBy(
  { kind, fields }: Reach,
  registered: readonly WebhookRow[],
  account: Client,
): Promise<Concerned> {
  const { webhook, type, code } = fields;
  if (webhook !== undefined) {
    return { webhooks: registered.filter((each) => isNamed(each, fields)), areAll: true, hasRemoved: false };
  }
  // What found no webhook goes to all.
  if (code === "no_webhook" || (kind === "all" && !isNarrow(fields))) {
    const takers = registered.filter(({ event_types }) => type === undefined || takes(event_types, String(type)));
    return { webhooks: takers, areAll: true, hasRemoved: false };
  }
  const state = kind === "failed" ? "FAILED" : null;
  const { records, areAll } = await readRecords(state, fields, mostRead, account);
  // What one webhook has failed to take also goes to those that wait for a retry of it.
  const waiting = kind === "failed" ? await readRecords("PENDING", fields, mostRead, account) : { records: [], areAll };
  const selected = new Set(records.map(({ eventId }) => eventId));
  const receiving = [...records, ...waiting.records.filter(({ eventId }) => selected.has(eventId))];
  const targets = new Set(receiving.map(({ targetWebhook }) => targetWebhook));
  const webhooks: WebhookRow[] = [];
  for (const each of registered) {
    const isLeftOut = !areAll && stateHint(each) !== null && !targets.has(each.url);
    const own = isLeftOut ? await readRecords(state, { ...fields, webhook: each.url }, 1, account) : null;
    if (targets.has(each.url) || (own !== null && own.records.length > 0)) webhooks.push(each);
  }
  const hasRemoved = records.some(({ targetWebhook: url }) => url !== "" && isGone(url, registered));
  return {
    webhooks,
    areAll: areAll && waiting.areAll && isNarrow(fields),
    hasRemoved: hasRemoved && isNarrow(fields),
  };
}

const isGone = (target: string, registered: readonly WebhookRow[]) => !registered.some(({ url }) => url === target);

/** Names the webhooks that would get nothing of a replay, or not yet. */
export async function reachHints(reach: Reach, account: Client): Promise<readonly string[]> {
  const { webhooks: registered } = await readWebhookSettings(account);
  const { webhooks, areAll, hasRemoved } = await concernedBy(reach, registered, account);
  const isFutile = areAll && webhooks.every(isDisabled);
  return [
    ...(isFutile ? ["Nothing would be sent: no webhook that could get it is registered and enabled."] : []),
    ...webhooks.flatMap((each) => stateHint(each) ?? []),
    ...(hasRemoved ? [removedHint(reach)] : []),
  ];
}

/** A replay of one failure sends what failed for a webhook that is gone only to one that it names. */
function removedHint({ kind, fields }: Reach): string {
  const flags = Object.entries(fields).map(([name, value]) => `--${name} ${shellWord(plainText(String(value)))}`);
  const command = ["postrider replay", kind, ...flags, "--webhook ID"].join(" ");
  return `What failed for a removed webhook goes to another only if you name it. Try: ${command}`;
}

// ---------------------------------------------------------------- while it runs

/** Names the paused webhooks that deliveries of a replay wait for. */
export async function waitingHints(replay: ReplayRow, account: Client): Promise<readonly string[]> {
  if (replay.status !== "running" || waitingOf(replay) === 0) return [];
  const { webhooks } = await readWebhookSettings(account);
  const awaited: WebhookRow[] = [];
  for (const each of webhooks.filter(({ state }) => state === "paused")) {
    const { records } = await readRecords("PENDING", { replay: replay.id, webhook: each.id }, 1, account);
    if (records.length > 0) awaited.push(each);
  }
  return awaited.flatMap((each) => stateHint(each) ?? []);
}

// ---------------------------------------------------------------- when it has ended

/** Why deliveries are skipped, in the order in which they are named. */
const causes = {
  disabled: "is disabled",
  gone: "is not registered",
  unwilling: "does not take the type",
} as const;

type Cause = keyof typeof causes;

export interface Skipped {
  /** `their webhook is disabled or is not registered` */
  readonly why: string;
  readonly hints: readonly string[];
}

/**
 * Why deliveries were skipped, as far as the records tell that were left as they are.
 * @param eventId of a replay of one event; undefined: it is not known any more
 */
export async function explainSkipped(
  replay: ReplayRow,
  eventId: string | undefined,
  account: Client,
): Promise<Skipped | null> {
  const { kind, filter = {}, skipped, payloadsErased = 0 } = replay;
  if (skipped === 0 || payloadsErased > 0) return null;
  const { webhooks: registered } = await readWebhookSettings(account);
  const { records, areAll } = await readLeft({ kind, fields: filter }, eventId, registered, account);
  const disabled = registered.filter(
    (each) =>
      isDisabled(each) && (isNamed(each, filter) || records.some(({ targetWebhook }) => targetWebhook === each.url)),
  );
  const found = new Set(records.flatMap((record) => causeOf(record, registered) ?? []));
  if (disabled.length > 0) found.add("disabled");
  const isGoneAndNarrow = found.has("gone") && kind !== "single" && isNarrow(filter) && filter.webhook === undefined;
  // A replay for one webhook that is disabled skips everything for that.
  const isKnown = found.size > 0 && (areAll || disabled.some((each) => isNamed(each, filter)));
  return {
    why: whyOf(isKnown ? found : new Set(Object.keys(causes) as Cause[])),
    hints: [
      ...disabled.flatMap((each) => stateHint(each) ?? []),
      ...(isGoneAndNarrow ? [removedHint({ kind, fields: filter })] : []),
    ],
  };
}

/** What a replay selected and is still `FAILED`: what it skipped, and what has failed again. */
async function readLeft(
  { kind, fields }: Reach,
  eventId: string | undefined,
  registered: readonly WebhookRow[],
  account: Client,
): Promise<Found> {
  if (kind === "failed" || kind === "all") return readRecords("FAILED", fields, mostRead, account);
  if (kind !== "single" || eventId === undefined) return { records: [], areAll: false };
  const records = (await read(`/v1/events/${idInPath(eventId, "postrider events list")}`, account)) as EventRow[];
  const isFor = (target: string) =>
    fields.webhook === undefined || registered.some((each) => isNamed(each, fields) && each.url === target);
  return {
    records: records.filter(({ state, targetWebhook }) => state === "FAILED" && isFor(targetWebhook)),
    areAll: true,
  };
}

/** Null: it was not skipped for what its webhook is, so it has failed again. */
function causeOf({ targetWebhook, eventType }: EventRow, registered: readonly WebhookRow[]): Cause | null {
  const webhook = registered.find(({ url }) => url === targetWebhook);
  if (!webhook) return "gone";
  if (isDisabled(webhook)) return "disabled";
  return takes(webhook.event_types, eventType) ? null : "unwilling";
}

function whyOf(found: ReadonlySet<Cause>): string {
  const words = Object.entries(causes).flatMap(([cause, text]) => (found.has(cause as Cause) ? [text] : []));
  const last = words.at(-1) ?? "";
  return `their webhook ${words.length > 1 ? `${words.slice(0, -1).join(", ")} or ${last}` : last}`;
}
