/**
 * The ranges to which no delivery may go, row by row as the registries list them (hazards, section 1.1), with the
 * vectors that belong to each: its first and last address, what is notable inside, and the neighbours just outside.
 * Counted with big integers and not with the library that the policy uses, so that a fault of it shows.
 */
export interface Row {
  readonly range: string;
  readonly why: string;
  /** Addresses inside that are worth a vector of their own. */
  readonly notable?: readonly string[];
  /** Which neighbours belong to the public internet. The others lie in another row, or outside 2000::/3. */
  readonly publicNeighbours: "both" | "below" | "above" | "none";
  /** The kernel itself refuses to connect there, so that the control cannot show that a listener would hear of it. */
  readonly undiallable?: "all" | "last";
}

export const rows4: readonly Row[] = [
  { range: "0.0.0.0/8", why: "this network; 0.0.0.0 is loopback on Linux", publicNeighbours: "above" },
  { range: "10.0.0.0/8", why: "private", publicNeighbours: "both" },
  { range: "100.64.0.0/10", why: "carrier-grade NAT", notable: ["100.100.100.200"], publicNeighbours: "both" },
  {
    range: "127.0.0.0/8",
    why: "loopback",
    notable: ["127.0.0.1", "127.0.0.53"],
    publicNeighbours: "both",
    undiallable: "last", // the broadcast address of the loopback interface
  },
  {
    range: "169.254.0.0/16",
    why: "link-local and metadata",
    notable: ["169.254.169.254", "169.254.170.2", "169.254.169.253"],
    publicNeighbours: "both",
  },
  { range: "172.16.0.0/12", why: "private", notable: ["172.17.0.1"], publicNeighbours: "both" },
  {
    range: "192.0.0.0/24",
    why: "IETF assignments",
    notable: ["192.0.0.170", "192.0.0.171", "192.0.0.192"],
    publicNeighbours: "both",
  },
  { range: "192.0.2.0/24", why: "TEST-NET-1", publicNeighbours: "both" },
  { range: "192.31.196.0/24", why: "AS112", publicNeighbours: "both" },
  { range: "192.52.193.0/24", why: "AMT", publicNeighbours: "both" },
  { range: "192.88.99.0/24", why: "6to4 relay", notable: ["192.88.99.1", "192.88.99.2"], publicNeighbours: "both" },
  { range: "192.168.0.0/16", why: "private", notable: ["192.168.0.1"], publicNeighbours: "both" },
  { range: "192.175.48.0/24", why: "AS112 direct delegation", publicNeighbours: "both" },
  { range: "198.18.0.0/15", why: "benchmarking", publicNeighbours: "both" },
  { range: "198.51.100.0/24", why: "TEST-NET-2", publicNeighbours: "both" },
  { range: "203.0.113.0/24", why: "TEST-NET-3", publicNeighbours: "both" },
  { range: "224.0.0.0/4", why: "multicast", publicNeighbours: "below", undiallable: "all" },
  { range: "240.0.0.0/4", why: "class E and broadcast", publicNeighbours: "none", undiallable: "last" },
  { range: "168.63.129.16/32", why: "Azure WireServer", publicNeighbours: "both" },
];

export const rows6: readonly Row[] = [
  { range: "::/128", why: "unspecified", publicNeighbours: "none" },
  { range: "::1/128", why: "loopback", publicNeighbours: "none" },
  {
    range: "::/96",
    why: "IPv4-compatible",
    notable: ["::127.0.0.1", "::7f00:1", "::8.8.8.8"],
    publicNeighbours: "none",
  },
  {
    range: "::ffff:0:0/96",
    why: "IPv4-mapped, even of public addresses",
    notable: ["::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:8.8.8.8"],
    publicNeighbours: "none",
    undiallable: "last",
  },
  {
    range: "::ffff:0:0:0/96",
    why: "SIIT",
    notable: ["::ffff:0:127.0.0.1", "::ffff:0:8.8.8.8"],
    publicNeighbours: "none",
  },
  {
    range: "64:ff9b::/96",
    why: "NAT64, well-known prefix",
    notable: ["64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b::8.8.8.8"],
    publicNeighbours: "none",
  },
  { range: "64:ff9b:1::/48", why: "NAT64, local prefix", notable: ["64:ff9b:1::10.0.0.1"], publicNeighbours: "none" },
  { range: "100::/64", why: "discard", publicNeighbours: "none" },
  { range: "100:0:0:1::/64", why: "dummy prefix", publicNeighbours: "none" },
  { range: "2001::/23", why: "IETF assignments", publicNeighbours: "both" },
  {
    range: "2001::/32",
    why: "Teredo",
    // Server 65.54.227.120, and the client 127.0.0.1 and 10.0.0.1 with its bits turned round.
    notable: ["2001:0:4136:e378:8000:63bf:80ff:fffe", "2001:0:4136:e378:8000:63bf:f5ff:fffe"],
    publicNeighbours: "below",
  },
  { range: "2001:2::/48", why: "benchmarking", publicNeighbours: "none" },
  { range: "2001:3::/32", why: "AMT", publicNeighbours: "none" },
  { range: "2001:4:112::/48", why: "AS112", publicNeighbours: "none" },
  { range: "2001:10::/28", why: "ORCHID", publicNeighbours: "none" },
  { range: "2001:20::/28", why: "ORCHIDv2", publicNeighbours: "none" },
  { range: "2001:30::/28", why: "DRIP", publicNeighbours: "none" },
  { range: "2001:db8::/32", why: "documentation", publicNeighbours: "both" },
  { range: "3fff::/20", why: "documentation", publicNeighbours: "above" },
  {
    range: "2002::/16",
    why: "6to4",
    notable: ["2002:7f00:1::1", "2002:a00:1::1", "2002:a9fe:a9fe::1", "2002:808:808::1"],
    publicNeighbours: "both",
  },
  { range: "2620:4f:8000::/48", why: "AS112", publicNeighbours: "both" },
  { range: "3ffe::/16", why: "returned 6bone", publicNeighbours: "below" },
  { range: "5f00::/16", why: "segment routing", publicNeighbours: "none" },
  {
    range: "fc00::/7",
    why: "unique local, metadata",
    notable: ["fd00:ec2::254", "fd20:ce::254", "fd00::1"],
    publicNeighbours: "none",
  },
  { range: "fe80::/10", why: "link-local", notable: ["fe80::1"], publicNeighbours: "none", undiallable: "all" },
  { range: "fec0::/10", why: "site-local", publicNeighbours: "none" },
  { range: "ff00::/8", why: "multicast", notable: ["ff02::1"], publicNeighbours: "none", undiallable: "all" },
  // What IANA has given to nobody: everything outside 2000::/3.
  { range: "::/3", why: "not given out", notable: ["200::1", "400::1"], publicNeighbours: "above" },
  { range: "4000::/3", why: "not given out", publicNeighbours: "below" },
  { range: "8000::/1", why: "not given out", publicNeighbours: "none", undiallable: "last" },
];

/** Addresses that look private, or were so once, and are not. */
export const wellKnownPublic = [
  ...["1.0.0.0", "1.1.1.1", "8.8.8.8", "100.0.0.1", "172.0.0.1", "192.0.1.1", "198.41.0.4"],
  ...["2000::", "2001:200::1", "2001:4860:4860::8888", "2606:4700:4700::1111", "2a00:1450::1", "2c0f:f248::1"],
];

/** The vectors of a row that must be refused, without repetition. */
export function insideOf({ range, notable = [] }: Row): string[] {
  const { first, last, format } = boundsOf(range);
  return [...new Set([format(first), format(last), ...notable])];
}

/** The neighbours of a row that are public. */
export function publicNeighboursOf({ range, publicNeighbours }: Row): string[] {
  const { first, last, format } = boundsOf(range);
  const below = publicNeighbours === "both" || publicNeighbours === "below" ? [format(first - 1n)] : [];
  const above = publicNeighbours === "both" || publicNeighbours === "above" ? [format(last + 1n)] : [];
  return [...below, ...above];
}

/** Whether the kernel refuses to connect to this vector of the row. */
export function isUndiallable({ range, undiallable }: Row, address: string): boolean {
  if (undiallable === "all") return true;
  const { last, format } = boundsOf(range);
  return undiallable === "last" && address === format(last);
}

/** One spelling for all of one address. */
export const plainly = (address: string) =>
  address.includes(":") ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address;

/** As it stands in a URL. */
export const hostOf = (address: string) => (address.includes(":") ? `[${address}]` : address);

export function boundsOf(range: string) {
  const [text = "", length = ""] = range.split("/");
  const width = text.includes(":") ? 128n : 32n;
  const first = text.includes(":") ? valueOf6(text) : valueOf4(text);
  const last = first + (1n << (width - BigInt(length))) - 1n;
  return { first, last, format: width === 32n ? format4 : format6 };
}

const valueOf4 = (text: string) => text.split(".").reduce((sum, part) => sum * 256n + BigInt(part), 0n);

/** RFC 4291, section 2.2, forms 1 and 2. */
function valueOf6(text: string): bigint {
  const [head = "", tail] = text.split("::");
  const groups = (part: string) => (part === "" ? [] : part.split(":"));
  const left = groups(head);
  const right = tail === undefined ? [] : groups(tail);
  const zeros = Array<string>(8 - left.length - right.length).fill("0");
  return [...left, ...zeros, ...right].reduce((sum, group) => sum * 65_536n + BigInt(`0x${group}`), 0n);
}

const format4 = (value: bigint) => [24n, 16n, 8n, 0n].map((bits) => (value >> bits) & 255n).join(".");

const format6 = (value: bigint) =>
  [112n, 96n, 80n, 64n, 48n, 32n, 16n, 0n].map((bits) => ((value >> bits) & 65_535n).toString(16)).join(":");
