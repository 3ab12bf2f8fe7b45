import ipaddr from "ipaddr.js";

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;
export type IpRange = [IpAddress, number];

/**
 * Ranges that `ipaddr.js` 2.5 calls unicast and that are still not the public internet (hardening, section 1.1). Its own
 * list has the rest of the IANA special-purpose registries; `test/delivery/public-address.test.ts` has a row for each,
 * so that an update of the library cannot open one unseen.
 */
const extraRefused: readonly IpRange[] = [
  "168.63.129.16/32", // Azure WireServer: looks public, is the host of the virtual machine
  "100:0:0:1::/64", // dummy prefix (RFC 9780)
  "3ffe::/16", // returned 6bone: nobody's, so anybody's
].map(parseRange);

/** The only IPv6 block from which IANA gives out global unicast addresses. What is outside is refused unseen. */
const globalUnicast6 = parseRange("2000::/3");

/** Link-local and metadata services: never a receiver, whatever the operator allows (decisions, section 1). */
const neverAllowed: readonly IpRange[] = ["169.254.0.0/16", "fd00:ec2::254/128"].map(parseRange);

/**
 * IPv6 ranges whose addresses carry an IPv4 address, and the byte at which it starts. They are not public; the list is
 * for an operator who allows such a range (64:ff9b::/96 behind NAT64, say), which must not open the IPv4 metadata
 * service with it.
 */
const embeddingRanges: readonly { range: IpRange; offset: number }[] = [
  { range: parseRange("::/96"), offset: 12 }, // IPv4-compatible
  { range: parseRange("::ffff:0:0/96"), offset: 12 }, // IPv4-mapped
  { range: parseRange("::ffff:0:0:0/96"), offset: 12 }, // SIIT
  { range: parseRange("64:ff9b::/96"), offset: 12 }, // NAT64, well-known prefix
  { range: parseRange("64:ff9b:1::/48"), offset: 12 }, // NAT64, local prefix, as a /96 of it
  { range: parseRange("2002::/16"), offset: 2 }, // 6to4
];

/** `10.0.0.0/8`, `fd00::/8`, or one address, which stands for itself. Throws what `ipaddr.js` throws on anything else. */
export function parseRange(text: string): IpRange {
  if (text.includes("/")) return ipaddr.parseCIDR(text);
  const address = ipaddr.parse(text);
  return [address, address.kind() === "ipv4" ? 32 : 128];
}

/** Reads an address in its plain form: no octal, hexadecimal or short IPv4, no IPv6 zone. */
export function parseAddress(text: string): IpAddress | undefined {
  if (text.includes("%")) return undefined;
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text);
  return ipaddr.IPv6.isValid(text) ? ipaddr.IPv6.parse(text) : undefined;
}

export function isInside(address: IpAddress, range: IpRange): boolean {
  return address.kind() === range[0].kind() && address.match(range);
}

/** Whether the address belongs to the public internet (hardening, section 1.1). */
export function isPublic(address: IpAddress): boolean {
  if (address.range() !== "unicast") return false;
  if (address.kind() === "ipv6" && !isInside(address, globalUnicast6)) return false;
  return !extraRefused.some((range) => isInside(address, range));
}

/** Whether no setting may open the address; also when it is wrapped into an IPv6 address. */
export function isNeverAllowed(address: IpAddress): boolean {
  if (neverAllowed.some((range) => isInside(address, range))) return true;
  if (address.kind() === "ipv4") return false;
  const bytes = address.toByteArray();
  return embeddingRanges.some(
    ({ range, offset }) => isInside(address, range) && isNeverAllowed(new ipaddr.IPv4(bytes.slice(offset, offset + 4))),
  );
}
