import type { Tenant, TenantChange } from "./tenant.ts";
import type { Webhook, WebhookSettings } from "./webhook.ts";

/**
 * Who did what, from where. An act that writes and its entry are written in one transaction, so neither exists without
 * the other.
 *
 * | Acts that are                                    | are                                                        |
 * |--------------------------------------------------|------------------------------------------------------------|
 * | logins, failed ones, replays of single events,   | counted in one entry for an hour, action, actor and address |
 * | keys and secrets shown                           |                                                            |
 * | strangers', from many addresses in that hour     | counted in one entry without an address                    |
 * | all others                                       | an entry each                                              |
 *
 * The latest are kept, for a year. A stranger who guesses passwords only uses up strangers' places, and an account, whatever it
 * does, none of the operator's.
 */
export const auditActions = [
  "account.created",
  "account.deleted",
  "account.resumed",
  "account.suspended",
  "account.viewed",
  "api_key.rotated",
  "api_key.shown",
  "backup.started",
  "backup_verification.started",
  "deliveries.resumed",
  "charges.resumed",
  "email.changed",
  "event.replayed",
  "limits.set",
  "login",
  "login.failed",
  "logout.all",
  "mail.tested",
  "master_key.rotated",
  "operator.login",
  "operator.refused",
  "operator_token.rotated",
  "password.changed",
  "password.reset",
  "tier.set",
  "tier.raised",
  "replay.cancelled",
  "replay.started",
  "server.restarted",
  "signing_key.rotated",
  "signing_secret.rotated",
  "signing_secret.shown",
  "webhook.enabled",
  "webhooks.changed",
] as const;
export type AuditAction = (typeof auditActions)[number];

/** `stranger`: somebody who gave a wrong password or token. */
export const auditActors = ["account", "operator", "stranger"] as const;
export type AuditActor = (typeof auditActors)[number];

/** Who does something, and from where. */
export interface Origin {
  readonly actor: AuditActor;
  /** How the operator got in: `command of ada`, for example. */
  readonly via: string | null;
  /** The client's. */
  readonly address: string | null;
}

/** The details of an act. Never a secret, nor the value of a webhook's header. */
export type AuditDetail = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** Somebody with a session of the account. @param address null: it is not known any more */
export const byAccount = (address: string | null): Origin => ({ actor: "account", via: null, address });

export interface Act extends Origin {
  readonly action: AuditAction;
  readonly detail?: AuditDetail;
}

/** The entry of a cancelled replay, whichever way it was cancelled. */
export const replayCancelled = (by: Origin, replayId: string): Act => ({
  ...by,
  action: "replay.cancelled",
  detail: { replay: replayId },
});

/** What an upgrade does to an account as it takes effect: it raises the tier, and may bring a login. */
export function actsOfUpgrade(
  before: Pick<Tenant, "email">,
  { tier, email, passwordHash }: TenantChange,
  { actor, via, address }: Origin,
): Act[] {
  const by = { actor, via, address };
  const acts: Act[] = [];
  if (tier !== undefined) acts.push({ ...by, action: "tier.raised", detail: { tier } });
  if (email !== undefined && email !== before.email) acts.push({ ...by, action: "email.changed" });
  if (passwordHash !== undefined) acts.push({ ...by, action: "password.changed" });
  return acts;
}

export interface AuditEntry extends Act {
  /** Empty: the entry is about the server. */
  readonly tenantId: string;
  /** How often it happened, first `at` and last `lastAt`. */
  readonly times: number;
  readonly at: number;
  readonly lastAt: number;
}

/** Rules, section 16. */
export const auditLifetimeMs = 365 * 24 * 60 * 60 * 1000;

export const auditLimits = {
  /** Entries per account; the server itself counts as one more. */
  entries: 10_000,
  /** How many of them may be about strangers. */
  ofStrangers: 1_000,
  /** How many of an account's may be the operator's; they make room for others only beyond that. */
  ofOperator: 5_000,
  /** Strangers' addresses that are told apart in one window. */
  strangersAtOnce: 50,
  /** The same act within this time is counted in one entry. */
  windowMs: 60 * 60 * 1000,
} as const;

/** How many entries about an account may be the operator's; of those about the server, "", all that are no strangers' are. */
export const mostOfOperator = (tenantId: string): number =>
  tenantId === "" ? auditLimits.entries - auditLimits.ofStrangers : auditLimits.ofOperator;

const counted: readonly AuditAction[] = [
  "api_key.shown",
  "event.replayed",
  "login",
  "login.failed",
  "operator.login",
  "operator.refused",
  "signing_secret.shown",
];

/** Whether it is counted together with recent acts of the same kind. */
export const isCounted = ({ action }: Act): boolean => counted.includes(action);

/** URLs of one kind in an entry. A list may be long, and entries are read by people. */
const mostUrls = 20;
const longestUrl = 200;

/** What changed in a list of webhooks; null: at most its order. The query strings of URLs may be secrets. */
export function webhookListDetail(before: readonly Webhook[], after: readonly Webhook[]): AuditDetail | null {
  const earlier = new Map(before.map((webhook) => [webhook.url, webhook]));
  const later = new Set(after.map(({ url }) => url));
  const kept = after.flatMap((is) => {
    const was = earlier.get(is.url);
    return was ? [{ was, is }] : [];
  });
  const changed = kept.flatMap(({ was, is }) => {
    const settings = changedSettings(was, is);
    return settings.length === 0 ? [] : [`${shownUrl(is)}: ${settings.join(", ")}`];
  });
  const switched = kept.filter(({ was, is }) => was.paused !== is.paused).map(({ is }) => is);
  const detail = {
    ...named("added", after.filter(({ url }) => !earlier.has(url)).map(shownUrl)),
    ...named("removed", before.filter(({ url }) => !later.has(url)).map(shownUrl)),
    ...named("paused", switched.filter(({ paused }) => paused).map(shownUrl)),
    ...named("resumed", switched.filter(({ paused }) => !paused).map(shownUrl)),
    ...named("changed", changed),
  };
  return Object.keys(detail).length === 0 ? null : detail;
}

/** Without query and fragment, in which secrets may stand. */
export function shownUrl({ url }: Pick<Webhook, "url">): string {
  const [shown = ""] = url.split(/[?#]/);
  return shown.length > longestUrl ? `${shown.slice(0, longestUrl)}…` : shown;
}

/** Leaves out a name that has no URLs. */
function named(name: string, urls: readonly string[]): AuditDetail {
  if (urls.length === 0) return {};
  const left = urls.length - mostUrls;
  return { [name]: left > 0 ? [...urls.slice(0, mostUrls), `and ${left} more`] : urls };
}

/**
 * Their names in the API, without `paused`: which way that was changed is said by a name of its own. In entries of earlier
 * versions it is among these.
 */
const settingNames: Readonly<Record<keyof Omit<WebhookSettings, "paused">, string>> = {
  eventTypes: "event_types",
  ordered: "ordered",
  rateLimit: "rate_limit",
  maxConcurrency: "max_concurrency",
  sealedHeaders: "headers",
};

function changedSettings(was: Webhook, is: Webhook): string[] {
  const names = Object.entries(settingNames) as [keyof typeof settingNames, string][];
  const settings = names.flatMap(([field, name]) => (isSame(was[field], is[field]) ? [] : [name]));
  return was.name === is.name ? settings : ["webhook_name", ...settings];
}

const isSame = (a: unknown, b: unknown): boolean =>
  a === b || (typeof a === "object" && typeof b === "object" && JSON.stringify(a) === JSON.stringify(b));
