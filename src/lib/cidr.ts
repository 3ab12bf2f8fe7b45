import ipaddr from "ipaddr.js";
import { remember } from "./remember.ts";

/** A few addresses make most requests, and each request's address is read several times. */
const rememberedTexts = 1_024;

/** A range of addresses, such as `10.0.0.0/8` or `fd00::/8`. */
export interface Cidr {
  readonly text: string;
  contains(address: string): boolean;
}

/** Reads a range; a lone address is a range of one. Null when it is neither. */
export function parseCidr(text: string): Cidr | null {
  try {
    const [base, bits] = text.includes("/") ? ipaddr.parseCIDR(text) : withAllBits(ipaddr.parse(text));
    return {
      text,
      contains(address) {
        const parsed = parseAddress(address);
        return parsed !== null && parsed.kind() === base.kind() && parsed.match(base, bits);
      },
    };
  } catch {
    return null;
  }
}

/** Reads an address; an IPv4 address that came in over an IPv6 socket (`::ffff:1.2.3.4`) is the IPv4 address. */
const parseAddress = remember((address): ipaddr.IPv4 | ipaddr.IPv6 | null => {
  try {
    return ipaddr.process(address);
  } catch {
    return null;
  }
}, rememberedTexts);

/**
 * The canonical spelling of an address: IPv6 as RFC 5952 writes it and without a zone, IPv4 even where it came in over an IPv6
 * socket. Null for everything else, including the short and octal forms of IPv4, which programs read in different ways.
 */
export const canonicalAddress = remember((text): string | null => {
  const bare = text.replace(/%\w+$/, "");
  const mayBe = bare.includes(":") || ipaddr.IPv4.isValidFourPartDecimal(bare);
  return mayBe ? (parseAddress(bare)?.toString() ?? null) : null;
}, rememberedTexts);

function withAllBits(address: ipaddr.IPv4 | ipaddr.IPv6): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  return [address, address.kind() === "ipv4" ? 32 : 128];
}

/**
 * What a limit for "one client address" counts by: IPv4 addresses whole, IPv6 by /64, because a single client usually owns
 * that much (rules, section 1).
 */
export const clientKey = remember((address): string => {
  const parsed = parseAddress(address);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed?.toString() ?? address;
  return `${new ipaddr.IPv6([...parsed.toByteArray().slice(0, 8), ...hostPart])}/64`;
}, rememberedTexts);

const hostPart = new Array<number>(8).fill(0);

/**
 * The network that an address belongs to, for taking turns: IPv6 by /48, which is what a site gets, IPv4 by /24, the
 * smallest network that is routed. Too coarse for a limit: neighbours would pay for what one client does.
 */
export const clientNetwork = remember((address): string => {
  const parsed = parseAddress(address);
  if (parsed === null) return address;
  const bytes = parsed.toByteArray().slice(0, parsed.kind() === "ipv4" ? 3 : 6);
  return bytes.join(".");
}, rememberedTexts);

/** True for the addresses of this machine itself, and for the name `localhost`. */
export const isLoopbackHost = remember((host): boolean => {
  const bare = host.replace(/^\[|\]$/g, "");
  if (bare.toLowerCase() === "localhost") return true;
  return parseAddress(bare)?.range() === "loopback";
}, rememberedTexts);

/** True for a literal address, in the form that the host of a URL has. */
export const isAddress = (host: string): boolean => parseAddress(host.replace(/^\[|\]$/g, "")) !== null;
