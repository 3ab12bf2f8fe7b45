import ipaddr from "ipaddr.js";

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;
export type IpRange = [IpAddress, number];

/**
 * Ranges that `ipaddr.js` 2.5 calls unicast but that are not the public internet (hazards, section 1.1). Its own list has
 * the rest of the IANA special-purpose registries; `test/delivery/network/public-address.test.ts` has a row for each, so
 * that an update of the library cannot open one unnoticed.
 */
const extraRefused: readonly IpRange[] = [
  "168.63.129.16/32", // Azure WireServer: looks public, but is the host of the virtual machine
  "100:0:0:1::/64", // dummy prefix (RFC 9780)
  "3ffe::/16", // returned 6bone: nobody's, so anybody's
].map(parseRange);

/**
 * The only IPv6 block from which IANA allocates global unicast addresses. Anything outside is refused without a further look.
 */
const globalUnicast6 = parseRange("2000::/3");

/** Link-local and metadata services: never a receiver, whatever the operator allows (rules, section 1). */
const neverAllowed: readonly IpRange[] = ["169.254.0.0/16", "fd00:ec2::254/128"].map(parseRange);

/** IPv6 addresses that stand for an IPv4 address: which ones, and where they hold its four bytes. */
export interface Embedding {
  readonly range: IpRange;
  readonly bytes: readonly number[];
}

const lastFour = [12, 13, 14, 15];

/**
 * None of these is public. The list is for an operator who allows such a range (64:ff9b::/96 behind NAT64, say, or ::/0),
 * which must not also open the IPv4 addresses inside it.
 */
const embeddings: readonly Embedding[] = [
  { range: parseRange("::/96"), bytes: lastFour }, // IPv4-compatible
  { range: parseRange("::ffff:0:0/96"), bytes: lastFour }, // IPv4-mapped
  { range: parseRange("::ffff:0:0:0/96"), bytes: lastFour }, // SIIT
  { range: parseRange("64:ff9b::/96"), bytes: lastFour }, // NAT64, well-known prefix
  { range: parseRange("64:ff9b:1::/48"), bytes: lastFour }, // NAT64, local prefix, as a /96 of it
  { range: parseRange("2002::/16"), bytes: [2, 3, 4, 5] }, // 6to4
];

/**
 * The address and the IPv4 addresses that it stands for: a delivery may go to it only if it may go to each of them.
 * @param nat64 prefixes of this network, which take precedence over the list
 */
export function facesOf(address: IpAddress, nat64: readonly Embedding[]): readonly IpAddress[] {
  // ::1 and :: lie in the range of IPv4-compatible addresses and stand for themselves.
  if (address.kind() === "ipv4" || ["loopback", "unspecified"].includes(address.range())) return [address];
  const around = ({ range }: Embedding) => isInside(address, range);
  const found = nat64.some(around) ? nat64 : embeddings;
  const all = address.toByteArray();
  return [
    address,
    ...found.filter(around).map(({ bytes }) => new ipaddr.IPv4(bytes.map((position) => all[position] ?? 0))),
  ];
}

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

/** Within its own family: an IPv4 address is in no IPv6 range, also if an address of that range contains it. */
export function isInside(address: IpAddress, range: IpRange): boolean {
  return address.kind() === range[0].kind() && address.match(range);
}

/** Whether the address belongs to the public internet (hazards, section 1.1). */
export function isPublic(address: IpAddress): boolean {
  if (address.range() !== "unicast") return false;
  if (address.kind() === "ipv6" && !isInside(address, globalUnicast6)) return false;
  return !extraRefused.some((range) => isInside(address, range));
}

/** Whether no setting may open the address. */
export function isNeverAllowed(address: IpAddress): boolean {
  return neverAllowed.some((range) => isInside(address, range));
}

/** Whether it may lie in a NAT64 prefix: there, an address that looks public may stand for an internal one. */
export function mayEmbed(address: IpAddress): boolean {
  return address.kind() === "ipv6" && isInside(address, globalUnicast6);
}
