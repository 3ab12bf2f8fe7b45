import { tiersAscending } from "./domain/plans.ts";
import { parseCidr } from "./lib/cidr.ts";
import { parseDuration } from "./lib/duration.ts";

export interface Setting<T> {
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
  /** Null: not valid. */
  parse(text: string): T | null;
}

export const oneOf =
  <const T extends string>(...values: T[]) =>
  (text: string): T | null =>
    values.find((value) => value === text) ?? null;

export const listOf =
  <T>(parse: (text: string) => T | null) =>
  (text: string): T[] | null => {
    const items = text === "" ? [] : text.split(",").map((item) => parse(item.trim()));
    return items.some((item) => item === null) ? null : (items as T[]);
  };

export const cidrText = (text: string) => (parseCidr(text) ? text : null);
/**
 * Without the forms that look like one range and mean another: `10/8` would be 0.0.0.0/8, and `::ffff:10.0.0.0/104` no
 * IPv4 address.
 */
export const plainCidrText = (text: string) =>
  /^(?!::ffff:).*:|^(?:\d+\.){3}\d+(?:\/|$)/i.test(text) ? cidrText(text) : null;
export const optionalText = (text: string): { value: string | null } => ({ value: text === "" ? null : text });

/** As long as 16 random bytes are in base64url, and two more for luck: it has to keep out everyone on the network. */
const shortestMetricsToken = 24;

/** What a header can carry (RFC 6750, section 2.1, and a little more). */
export const metricsToken = (text: string): { value: string | null } | null =>
  text.length >= shortestMetricsToken && text.length <= 512 && /^[\x21-\x7e]+$/.test(text) ? { value: text } : null;

export function wholeNumber(text: string, min: number, max: number): number | null {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  return value >= min && value <= max ? value : null;
}

const byteUnits: Readonly<Record<string, number>> = { "": 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };

export function byteSize(text: string): number | null {
  const [, digits, unit] = /^(\d{1,12})\s?(KiB|MiB|GiB|)$/.exec(text) ?? [];
  return digits === undefined ? null : Number(digits) * (byteUnits[unit ?? ""] ?? 1);
}

export function httpUrl(text: string): string | null {
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
const shortestRetentionMs = 3_600_000;

export function retentionAge(text: string): { value: number | null } | null {
  if (text === "none") return { value: null };
  const value = parseDuration(text);
  return value === null || value < shortestRetentionMs ? null : { value };
}

/** One host, by name or as a folder with its socket (`?path=`), and a database. */
export function isDatabaseUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, pathname, hostname } = new URL(text);
  return /^postgres(ql)?:$/.test(protocol) && hostname !== "" && !hostname.includes(",") && /^\/[^/]+$/.test(pathname);
}

export const defaultTimeZone = "Africa/Lagos";

export function timeZone(text: string): string | null {
  // The default needs no check, and loading the system's time zone data takes 5 ms of a start.
  if (text === defaultTimeZone) return text;
  try {
    return new Intl.DateTimeFormat("en-US", { timeZone: text }).resolvedOptions().timeZone;
  } catch {
    return null;
  }
}

/** `15000` or `15000.50`; money is counted in whole kobo. */
export function nairaInKobo(text: string): number | null {
  const [, naira, kobo = ""] = /^(\d{1,9})(?:\.(\d{1,2}))?$/.exec(text) ?? [];
  return naira === undefined ? null : Number(naira) * 100 + Number(kobo.padEnd(2, "0"));
}

export const defaultDeliveryRates = "free=100,pro=1000,business=2500,enterprise=none";
const highestRate = 100_000;

/** `free=100,pro=none`: each plan at most once; null: no limit. */
export function ratesOf(text: string): Record<string, number | null> | null {
  const rates: Record<string, number | null> = {};
  for (const entry of text.split(",")) {
    const [tier = "", given = "", ...rest] = entry.trim().split("=");
    const rate = given === "none" ? null : wholeNumber(given, 1, highestRate);
    const isNew = tiersAscending.some((known) => known === tier) && !Object.hasOwn(rates, tier);
    if (rest.length > 0 || !isNew || (rate === null && given !== "none")) return null;
    rates[tier] = rate;
  }
  return rates;
}

export const largestBody = 4 * 2 ** 20;

export const setting = <T>(s: Setting<T>) => s;

export const isSmtpUrl = (text: string): boolean => isPlainUrl(text, /^smtps?:$/);
export const isProxyUrl = (text: string): boolean => isPlainUrl(text, /^http:$/);

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
