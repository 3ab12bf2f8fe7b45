import { tiersAscending } from "./domain/plans.ts";
import type { Tier } from "./domain/tenant.ts";
import { parseCidr } from "./lib/cidr.ts";
import { longestDurationMs, parseDuration, unitMs } from "./lib/duration.ts";

/** What a value may be: the rule that a refusal quotes next to the parser that applies it. */
export interface Form<T> {
  /** Completes "must be …". */
  readonly rule: string;
  /** Null: not valid. */
  parse(text: string): T | null;
}

export interface Setting<T> extends Form<T> {
  env: string;
  /** Command-line form, for what is often set. */
  flag?: string;
  /** As it would be written in the environment; also the default. */
  default: string;
  doc: string;
  /** A valid value, shown when a given one is invalid. */
  example: string;
  /** What to try where the example would do harm if it were copied as it is. @default the example */
  remedy?: string;
  /** Matches a secret that is given by mistake: it is not shown. */
  mistakenSecret?: RegExp;
  /** A given value is never shown, or only as `masked` leaves it. It may be in a file (`fileVariable`). */
  isSecret?: true;
  masked?: (text: string) => string;
  /** It concerns what is sold: not shown where nothing is. */
  sells?: boolean;
  /** An address, which may also be given in a file. */
  isUrl?: true;
}

export const setting = <T>(s: Setting<T>) => s;

/** A value that may be absent, wrapped so that null can mean "not valid". */
export interface Optional<T> {
  readonly value: T | null;
}

/** Empty: nothing is set. */
export const optional = <T>({ rule, parse }: Form<T>): Form<Optional<T>> => ({
  rule,
  parse: (text) => (text === "" ? { value: null } : found(parse(text))),
});

/** One word says that there is none of it. */
export const orWord = <T>(word: string, { rule, parse }: Form<T>): Form<Optional<T>> => ({
  rule: `${word} or ${rule}`,
  parse: (text) => (text === word ? { value: null } : found(parse(text))),
});

const found = <T>(value: T | null): Optional<T> | null => (value === null ? null : { value });

export const oneOf = <const T extends string>(...values: T[]): Form<T> => ({
  rule: `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`,
  parse: (text) => values.find((value) => value === text) ?? null,
});

/** Items with commas between them; none when empty. */
export const listOf = <T>(items: string, parse: (text: string) => T | null): Form<T[]> => ({
  rule: `${items}, comma-separated`,
  parse(text) {
    const found = text === "" ? [] : text.split(",").map((item) => parse(item.trim()));
    return found.some((item) => item === null) ? null : (found as T[]);
  },
});

export const itemLike = (pattern: RegExp) => (text: string) => (pattern.test(text) ? text : null);

/** A text that is taken as it is. */
export const textThat = (rule: string, isValid: (text: string) => boolean): Form<string> => ({
  rule,
  parse: (text) => (isValid(text) ? text : null),
});

export const textLike = (rule: string, pattern: RegExp): Form<string> => ({ rule, parse: itemLike(pattern) });

/** Refuses nothing: whether a file exists, for example, shows when it is read. */
export const anyText = optional(textThat("any text", () => true));

export const wholeNumber = (least: number, most: number): Form<number> => ({
  rule: `a whole number from ${least} to ${most}`,
  parse(text) {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    return value >= least && value <= most ? value : null;
  },
});

const byteUnits: Readonly<Record<string, number>> = { "": 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };

export const byteSize = ({ least = 0, most = Number.POSITIVE_INFINITY } = {}): Form<number> => ({
  rule: `a whole number of bytes, KiB, MiB or GiB${between(least, most, byteUnits)}`,
  parse(text) {
    const [, digits, unit] = /^(\d{1,12})\s?(KiB|MiB|GiB|)$/.exec(text) ?? [];
    if (digits === undefined) return null;
    const size = Number(digits) * (byteUnits[unit ?? ""] ?? 1);
    return size >= least && size <= most ? size : null;
  },
});

/** In milliseconds. */
export const duration = ({ least = 1, units = "ms, s, m, h or d" } = {}): Form<number> => ({
  rule: `a whole number of ${units}${between(least, longestDurationMs, unitMs)}`,
  parse(text) {
    const ms = parseDuration(text);
    return ms === null || ms < least ? null : ms;
  },
});

/** The end of a rule. */
function between(least: number, most: number, units: Readonly<Record<string, number>>): string {
  if (most !== Number.POSITIVE_INFINITY) return `, from ${spelled(least, units)} to ${spelled(most, units)}`;
  return least === 0 ? "" : `, at least ${spelled(least, units)}`;
}

/** In the largest unit that needs no fraction. */
function spelled(amount: number, units: Readonly<Record<string, number>>): string {
  const [unit = "", size = 1] = Object.entries(units).findLast(([, size]) => amount % size === 0) ?? [];
  return `${amount / size}${unit}`;
}

const cidrText = (text: string) => (parseCidr(text) ? text : null);
/**
 * Without the forms that look like one range and mean another: `10/8` would be 0.0.0.0/8, and `::ffff:10.0.0.0/104` no
 * IPv4 address.
 */
const plainCidrText = (text: string) =>
  /^(?!::ffff:).*:|^(?:\d+\.){3}\d+(?:\/|$)/i.test(text) ? cidrText(text) : null;
export const cidrs = listOf("CIDRs such as 10.0.0.0/8", cidrText);
export const plainCidrs = listOf("CIDRs such as 10.0.0.0/8, with all four parts of an IPv4 address", plainCidrText);

/** As long as 16 random bytes are in base64url, and two more for luck: it has to keep out everyone on the network. */
const shortestMetricsToken = 24;
const longestMetricsToken = 512;

/** What a header can carry (RFC 6750, section 2.1, and a little more). */
export const metricsToken = textLike(
  `${shortestMetricsToken} to ${longestMetricsToken} printable ASCII characters without spaces`,
  new RegExp(`^[\\x21-\\x7e]{${shortestMetricsToken},${longestMetricsToken}}$`),
);

/** Of the host and port alone. */
export const httpUrl: Form<string> = {
  rule: "an http or https URL without a path, query or user name",
  parse: originOf,
};

function originOf(text: string): string | null {
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  const isPlain = url.pathname === "/" && url.search === "" && url.hash === "" && url.username === "";
  return (url.protocol === "http:" || url.protocol === "https:") && isPlain ? url.origin : null;
}

/** An address without any parts that may be secret. */
export function withoutPassword(text: string): string {
  const url = new URL(text);
  if (url.password !== "") url.password = "********";
  for (const name of url.searchParams.keys())
    if (/pass|secret|token|key$/i.test(name)) url.searchParams.set(name, "********");
  return url.href;
}

/** If this were shorter than a delivery may take, nothing would be left to look at. */
const shortestRetentionMs = unitMs.h;

export const retentionAge = orWord("none", duration({ least: shortestRetentionMs, units: "h or d" }));

/** PostgreSQL's own, from the weakest to the strongest. */
const sslModes = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];

/** One host, by name or as a folder with its socket (`?path=`), and a database. */
function isDatabaseUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, pathname, hostname, searchParams } = new URL(text);
  const hasOneHost = hostname !== "" && !hostname.includes(",");
  const isEncryptedAsKnown = searchParams.getAll("sslmode").every((mode) => sslModes.includes(mode));
  return /^postgres(ql)?:$/.test(protocol) && hasOneHost && /^\/[^/]+$/.test(pathname) && isEncryptedAsKnown;
}

export const databaseUrl = textThat(
  `postgres://user:password@host:port/database, with a single host, and no other sslmode than ${sslModes.join(", ")}`,
  isDatabaseUrl,
);

export const defaultTimeZone = "Africa/Lagos";

export const timeZone: Form<string> = {
  rule: "a time zone by its IANA name",
  parse(text) {
    // The default needs no check, and loading the system's time zone data takes 5 ms of a start.
    if (text === defaultTimeZone) return text;
    try {
      return new Intl.DateTimeFormat("en-US", { timeZone: text }).resolvedOptions().timeZone;
    } catch {
      return null;
    }
  },
};

/** `15000` or `15000.50`; money is counted in whole kobo. */
export const nairaInKobo: Form<number> = {
  rule: "an amount in naira with two decimals at most",
  parse(text) {
    const [, naira, kobo = ""] = /^(\d{1,9})(?:\.(\d{1,2}))?$/.exec(text) ?? [];
    return naira === undefined ? null : Number(naira) * 100 + Number(kobo.padEnd(2, "0"));
  },
};

export const defaultDeliveryRates = "free=100,pro=1000,business=2500,enterprise=none";

const deliveryRate = orWord("none", wholeNumber(1, 100_000));

/** `free=100,pro=none`: those that are not given keep their default; null: no limit. */
export const deliveryRates: Form<Record<Tier, number | null>> = {
  rule: `TIER=RATE, comma-separated; each tier (${tiersAscending.join(", ")}) at most once, its rate ${deliveryRate.rule}`,
  parse(text) {
    const given = ratesOf(text);
    return given && ({ ...ratesOf(defaultDeliveryRates), ...given } as Record<Tier, number | null>);
  },
};

function ratesOf(text: string): Record<string, number | null> | null {
  const rates: Record<string, number | null> = {};
  for (const entry of text.split(",")) {
    const [tier = "", given = "", ...rest] = entry.trim().split("=");
    const rate = deliveryRate.parse(given);
    const isNew = tiersAscending.some((known) => known === tier) && !Object.hasOwn(rates, tier);
    if (rest.length > 0 || !isNew || rate === null) return null;
    rates[tier] = rate.value;
  }
  return rates;
}

export const smtpUrl = textThat(
  "smtp://host:port or smtps://host:port, optionally with user:password@ (percent-encoded) before the host",
  (text) => isPlainUrl(text, /^smtps?:$/),
);

export const proxyUrl = textThat(
  "http://host:port, optionally with user:password@ (percent-encoded) before the host",
  (text) => isPlainUrl(text, /^http:$/),
);

function canDecode(part: string): boolean {
  try {
    decodeURIComponent(part);
    return true;
  } catch {
    return false;
  }
}

/** A URL with a host, and with user and password or neither. */
function isPlainUrl(text: string, scheme: RegExp): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, pathname, search, hash, username, password } = new URL(text);
  const isPlain = /^\/?$/.test(pathname) && search === "" && hash === "";
  const isDecodable = [username, password].every(canDecode);
  return scheme.test(protocol) && hostname !== "" && isPlain && isDecodable && (username === "") === (password === "");
}
