import { StartupError } from "../../domain/errors.ts";
import type { Listener } from "./own-listeners.ts";
import {
  facesOf,
  type IpAddress,
  type IpRange,
  isInside,
  isNeverAllowed,
  isPublic,
  mayEmbed,
  parseAddress,
  parseRange,
} from "./public-address.ts";
import { nowhere, type Surroundings } from "./surroundings.ts";

/**
 * Where a delivery may go: the defence against server-side request forgery (hazards, sections 1.1 and 1.2; rules,
 * sections 1 and 9). It judges twice. `checkUrl` judges the text before it is saved, which gives the tenant a reason
 * right away; `checkAddress` judges what is actually dialled, at every new connection, because a name that was public
 * yesterday may resolve to an internal address today. Pure: nothing is resolved here.
 */
export interface AddressPolicy {
  /** Judges a webhook URL as text, before it is saved and again before it is used. */
  checkUrl(input: string): UrlVerdict;
  /** Judges one IP address that would be dialled for `target`: the literal in its URL or one that its name resolved to. */
  checkAddress(address: string, target: DialTarget): AddressVerdict;
  /**
   * Learns what must be known about this network to judge these addresses; undefined if that is already known or not
   * needed. Never rejects.
   */
  learn(addresses: readonly string[]): Promise<void> | undefined;
  /** A different number whenever the verdict on an address may have changed. */
  version(): number;
  /** Replaces the own listeners from now on: see `AddressPolicyOptions`. */
  avoid(ownListeners: readonly Listener[]): void;
  /** Whether an open connection may be reused: it leads to another machine, or is allowed to lead to this one. */
  mayKeep(address: string): boolean;
}

export type UrlVerdict = { ok: true; url: URL } | Refusal;
export type AddressVerdict = { ok: true } | Refusal;

export interface Refusal {
  ok: false;
  /** snake_case word for logs and tests. */
  rule: string;
  /** The rule and the remedy for the client, worded to follow the name of a field: "must …". Never names an address. */
  message: string;
}

/** The parts of a URL that decide which addresses it may use. A `URL` is one. */
export type DialTarget = Pick<URL, "protocol" | "hostname" | "port">;

export interface AddressPolicyOptions {
  /** Rules, section 1: allows http and loopback, but only as `localhost` or a loopback literal. */
  localMode: boolean;
  /** Ranges that are not public but allowed all the same, for http too (`POSTRIDER_ALLOW_TARGETS`). */
  allowTargets: readonly string[];
  /** Ranges to which nothing goes, whatever else is allowed (`POSTRIDER_BLOCK_TARGETS`). @default none */
  blockTargets?: readonly string[];
  /**
   * Listeners and public URLs of this server and of those that share its store: delivering to them would be a loop.
   * `AddressPolicy.avoid` replaces them, since a server that takes a free port knows it only once it listens.
   */
  ownListeners: readonly Listener[];
}

const maxUrlLength = 2048;
/** RFC 1035, section 2.3.4, without the final dot. */
const maxNameLength = 253;
/** Letters, digits, inner hyphens (RFC 952, RFC 1123): what a certificate and a public DNS zone can contain. */
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Suffixes of names that only mean something on a private network (RFC 6761, RFC 6762, RFC 8375, RFC 9476, and custom). */
const privateSuffixes = ["localhost", "local", "internal", "home.arpa", "lan", "intranet", "corp", "home", "test"];
/** Suffixes of names that DNS never resolves (RFC 6761, RFC 7686). */
const unresolvableSuffixes = ["invalid", "onion"];

/** The Fetch standard's "bad ports" and 0: services that could take an HTTP request for their own protocol. */
const badPorts: ReadonlySet<number> = new Set([
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
  6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
]);

const allowed = { ok: true } as const;
const refuse = (rule: string, message: string): Refusal => ({ ok: false, rule, message });

/** @param surroundings of the thread that dials; without them addresses mean what they mean everywhere */
export function createAddressPolicy(
  { localMode, allowTargets, blockTargets = [], ownListeners }: AddressPolicyOptions,
  surroundings: Surroundings = nowhere,
): AddressPolicy {
  const allowedRanges = allowTargets.map(readRangeOf("POSTRIDER_ALLOW_TARGETS"));
  let avoided = ownListeners;
  let timesAvoided = 0;
  const hasAllowedRanges = allowedRanges.length > 0;
  const blockedRanges = blockTargets.map(readRangeOf("POSTRIDER_BLOCK_TARGETS"));

  const schemeRule = localMode
    ? 'must start with "https://" (or "http://" before localhost or a loopback address)'
    : 'must start with "https://"';

  /** Only these two forms may dial loopback in local mode; a public name that resolves to it may not. */
  const isLocalTarget = ({ hostname }: DialTarget) =>
    localMode && (hostname === "localhost" || isLoopbackLiteral(hostname));

  const isOwn = (host: string, target: DialTarget) =>
    avoided.some((own) => own.port === portOf(target) && listenerName(own.host) === listenerName(host));

  function checkUrl(input: string): UrlVerdict {
    const asText = checkText(input);
    if (!asText.ok) return asText;

    // The parser alone decides what the host is: it turns `0x7f.1`, `127。0。0。1` and the like into plain addresses.
    const url = URL.parse(input);
    if (url === null) return refuse("url_invalid", "must be a valid URL such as https://example.com/hook");

    const asHost = checkHost(url);
    if (!asHost.ok) return asHost;
    const asPort = checkPort(url);
    return asPort.ok ? { ok: true, url } : asPort;
  }

  /** Refuses, before parsing, whatever the parser would hide or repair. */
  function checkText(input: string): AddressVerdict {
    if (input.length > maxUrlLength) return refuse("url_too_long", "must be at most 2,048 characters long");
    if (hasControlOrSpace(input)) {
      return refuse("url_control_character", "must not contain spaces or control characters");
    }
    if (input.includes("\\")) return refuse("url_backslash", "must not contain a backslash");
    const prefix = /^https?:\/\/(?!\/)/i.exec(input)?.[0];
    if (prefix === undefined) return refuse("url_scheme", schemeRule);
    if (input.includes("#")) return refuse("url_fragment", "must not contain a fragment (#)");
    const authority = /^[^/?]*/.exec(input.slice(prefix.length))?.[0] ?? "";
    if (authority.includes("@")) return refuse("url_credentials", "must not contain a user name or password");
    return allowed;
  }

  function checkHost(url: URL): AddressVerdict {
    const literal = literalIn(url.hostname);
    if (literal !== undefined) return checkAddress(literal, url);
    if (isOwn(url.hostname, url)) return ownListener();
    if (isLocalTarget(url)) return allowed;
    if (url.protocol === "http:" && !hasAllowedRanges) return refuse("url_scheme", schemeRule);
    return checkName(url.hostname);
  }

  function checkName(hostname: string): AddressVerdict {
    const name = withoutTrailingDot(hostname);
    const labels = name.split(".");
    if (name.length > maxNameLength || !labels.every((part) => label.test(part))) {
      return refuse(
        "host_malformed",
        "must have a host name of letters, digits and inner hyphens, such as example.com",
      );
    }
    if (hasSuffix(name, unresolvableSuffixes)) {
      return refuse("host_special_use", "must have a host name that DNS can resolve, such as example.com");
    }
    // On the operator's own network these names are normal, and every address they resolve to is judged.
    if (hasAllowedRanges) return allowed;
    if (labels.length === 1) {
      return refuse("host_single_label", "must have a full public host name, such as example.com");
    }
    if (hasSuffix(name, privateSuffixes)) {
      return refuse("host_special_use", "must have a public host name, not one reserved for private networks");
    }
    return allowed;
  }

  function checkPort(url: URL): AddressVerdict {
    const port = portOf(url);
    if (!badPorts.has(port)) return allowed;
    return refuse("port_blocked", "must not use a port reserved for another protocol; use 443 or another web port");
  }

  function checkAddress(address: string, target: DialTarget): AddressVerdict {
    const parsed = parseAddress(address);
    if (parsed === undefined) return notPublic();
    // An address that stands for an IPv4 address is judged as that one too: no IPv6 range is a way around the rules for IPv4.
    const faces = facesOf(parsed, surroundings.nat64.prefixes());
    if (faces.some(isNeverAllowed)) return notPublic();
    if (faces.some((face) => blockedRanges.some((range) => isInside(face, range)))) return blocked();
    if (faces.some((face) => isOwn(face.toString(), target))) return ownListener();
    if (isLocalTarget(target)) return isLoopback(parsed) ? allowed : notPublic();
    if (faces.some(isClosedInterface)) return ownMachine();
    if (isOpened(parsed)) return faces.every((face) => isOpened(face) || isPublic(face)) ? allowed : notPublic();
    if (target.protocol !== "https:") return refuse("http_not_allowed", schemeRule);
    return faces.every(isPublic) ? allowed : notPublic();
  }

  /**
   * Whether the operator has opened the address. Only a range of loopback itself opens this machine, never one that
   * merely contains it (rules, section 16).
   */
  function isOpened(address: IpAddress): boolean {
    if (address.range() === "unspecified") return false; // the kernel treats it as loopback
    const isSelf = isLoopback(address);
    return allowedRanges.some((range) => isInside(address, range) && (!isSelf || isLoopbackRange(range)));
  }

  /**
   * Nothing that listens on this machine may be reached from outside through us. In local mode there is no outside, so a
   * range that the operator allows counts there.
   */
  function isClosedInterface(address: IpAddress): boolean {
    return surroundings.isOwn(address.toString()) && !(localMode && isOpened(address));
  }

  function learn(addresses: readonly string[]): Promise<void> | undefined {
    const isNeeded = addresses.some((address) => {
      if (!address.includes(":")) return false;
      const parsed = parseAddress(address);
      return parsed !== undefined && (mayEmbed(parsed) || (parsed.kind() === "ipv6" && isOpened(parsed)));
    });
    return isNeeded ? surroundings.nat64.learn() : undefined;
  }

  return {
    checkUrl,
    checkAddress,
    learn,
    version: () => surroundings.version() + timesAvoided,
    avoid(listeners) {
      avoided = listeners;
      timesAvoided += 1;
    },
    mayKeep: (address) => localMode || !surroundings.isOwn(address),
  };
}

const notPublic = () =>
  refuse("address_not_public", "must have a public address, not a private, local or reserved one");
const ownListener = () => refuse("own_listener", "must not be an address of this server itself");
const ownMachine = () => refuse("own_machine", "must not be an address of the machine this server runs on");
const blocked = () =>
  refuse("address_blocked", "must not be in an address range that this server's operator has blocked");

const readRangeOf = (setting: string) => (text: string) => {
  try {
    return parseRange(text);
  } catch {
    throw new StartupError(`${setting}: "${text}" is not an address range. Try: 10.0.0.0/8,fd00::/8`);
  }
};

/** C0 controls, space and DEL. The URL parser drops some of them silently, so that two texts would name one host. */
function hasControlOrSpace(input: string): boolean {
  for (let i = 0; i < input.length; i++) {
    const code = input.charCodeAt(i);
    if (code <= 0x20 || code === 0x7f) return true;
  }
  return false;
}

/** The address in a parsed host: `127.0.0.1`, `[::1]`. Undefined for a name. */
export function literalIn(hostname: string): string | undefined {
  if (hostname.startsWith("[")) return hostname.slice(1, -1);
  return parseAddress(hostname) === undefined ? undefined : hostname;
}

/** The address in a text that may not be a URL. */
export const literalInUrl = (input: string) => literalIn(URL.parse(input)?.hostname ?? "");

function isLoopbackLiteral(hostname: string): boolean {
  const literal = literalIn(hostname);
  const parsed = literal === undefined ? undefined : parseAddress(literal);
  return parsed !== undefined && isLoopback(parsed);
}

const isLoopback = (address: IpAddress) => address.range() === "loopback";

/** Whether the whole range is loopback. */
const isLoopbackRange = ([base, bits]: IpRange) => isLoopback(base) && bits >= (base.kind() === "ipv4" ? 8 : 128);

export const withoutTrailingDot = (hostname: string) => (hostname.endsWith(".") ? hostname.slice(0, -1) : hostname);

const hasSuffix = (name: string, suffixes: readonly string[]) =>
  suffixes.some((suffix) => name === suffix || name.endsWith(`.${suffix}`));

/** The port that is dialled. */
export function portOf({ protocol, port }: DialTarget): number {
  if (port !== "") return Number(port);
  return protocol === "https:" ? 443 : 80;
}

/** One spelling for all forms of one listener. Loopback and "every interface" count as one host: each reaches the other. */
function listenerName(host: string): string {
  const bare = withoutTrailingDot(host.toLowerCase());
  if (bare === "localhost") return "loopback";
  const parsed = parseAddress(literalIn(bare) ?? bare);
  if (parsed === undefined) return bare;
  return isLoopback(parsed) || parsed.range() === "unspecified" ? "loopback" : parsed.toString();
}
