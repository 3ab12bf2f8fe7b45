import { describe, expect, test } from "bun:test";
import { createAddressPolicy } from "../../src/delivery/address.ts";

/** The ranges of hardening, section 1.1, asked through the policy: a list that nothing asks would protect no one. */
const policy = createAddressPolicy({ localMode: false, allowTargets: [], ownListeners: [] });

const ruleForAddress = (address: string, target = "https://receiver.example/") => {
  const verdict = policy.checkAddress(address, new URL(target));
  return verdict.ok ? "allowed" : verdict.rule;
};

describe("an address of a special-purpose range is refused", () => {
  // Hardening, section 1.1: the first and the last address of each range.
  test.each([
    ["this network", "0.0.0.0", "0.255.255.255"],
    ["RFC 1918, 10/8", "10.0.0.0", "10.255.255.255"],
    ["carrier-grade NAT", "100.64.0.0", "100.127.255.255"],
    ["Alibaba metadata", "100.100.100.200", "100.100.100.200"],
    ["loopback", "127.0.0.0", "127.255.255.255"],
    ["link-local", "169.254.0.0", "169.254.255.255"],
    ["AWS, GCP and Azure metadata", "169.254.169.254", "169.254.170.2"],
    ["RFC 1918, 172.16/12", "172.16.0.0", "172.31.255.255"],
    ["IETF assignments", "192.0.0.0", "192.0.0.255"],
    ["TEST-NET-1", "192.0.2.0", "192.0.2.255"],
    ["AS112", "192.31.196.0", "192.31.196.255"],
    ["AMT", "192.52.193.0", "192.52.193.255"],
    ["6to4 relay", "192.88.99.0", "192.88.99.255"],
    ["RFC 1918, 192.168/16", "192.168.0.0", "192.168.255.255"],
    ["AS112 direct delegation", "192.175.48.0", "192.175.48.255"],
    ["benchmarking", "198.18.0.0", "198.19.255.255"],
    ["TEST-NET-2", "198.51.100.0", "198.51.100.255"],
    ["TEST-NET-3", "203.0.113.0", "203.0.113.255"],
    ["multicast", "224.0.0.0", "239.255.255.255"],
    ["class E and broadcast", "240.0.0.0", "255.255.255.255"],
    ["Azure WireServer", "168.63.129.16", "168.63.129.16"],
    ["unspecified", "::", "::"],
    ["loopback", "::1", "::1"],
    ["IPv4-compatible", "::2", "::ffff:ffff"],
    ["IPv4-compatible loopback", "::127.0.0.1", "::7f00:1"],
    ["IPv4-mapped", "::ffff:0:0", "::ffff:255.255.255.255"],
    ["IPv4-mapped, even of a public address", "::ffff:8.8.8.8", "::ffff:808:808"],
    ["SIIT", "::ffff:0:0:0", "::ffff:0:255.255.255.255"],
    ["NAT64, well-known prefix", "64:ff9b::", "64:ff9b::ffff:ffff"],
    ["NAT64, local prefix", "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"],
    ["discard", "100::", "100::ffff:ffff:ffff:ffff"],
    ["dummy prefix", "100:0:0:1::", "100:0:0:1:ffff:ffff:ffff:ffff"],
    ["Teredo", "2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["benchmarking", "2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff"],
    ["AMT", "2001:3::", "2001:3:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["AS112", "2001:4:112::", "2001:4:112:ffff:ffff:ffff:ffff:ffff"],
    ["ORCHID", "2001:10::", "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["ORCHIDv2", "2001:20::", "2001:2f:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["DRIP", "2001:30::", "2001:3f:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["IETF assignments, whole", "2001:1ff::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["documentation", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["documentation", "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["6to4", "2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["6to4 of a private address", "2002:a00:1::", "2002:7f00:1::1"],
    ["AS112", "2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff"],
    ["6bone", "3ffe::", "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["segment routing", "5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["unique local", "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["AWS metadata", "fd00:ec2::254", "fd00:ec2::254"],
    ["GCP metadata", "fd20:ce::254", "fd20:ce::254"],
    ["link-local", "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["site-local", "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["multicast", "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["outside 2000::/3, below", "200::1", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["outside 2000::/3, above", "4000::", "fbff::1"],
  ])("%s: %s and %s", (_range, first, last) => {
    expect(ruleForAddress(first)).toBe("address_not_public");
    expect(ruleForAddress(last)).toBe("address_not_public");
    expect(policy.checkUrl(`https://${first.includes(":") ? `[${first}]` : first}/`).ok).toBe(false);
  });

  test.each([
    ["an octal one", "0177.0.0.1"],
    ["a short one", "127.1"],
    ["a number", "2130706433"],
    ["a hexadecimal one", "0x7f.0.0.1"],
    ["one with a zone", "fe80::1%eth0"],
    ["a public one with a zone", "2606:4700::1111%eth0"],
    ["a name", "receiver.example"],
    ["nothing", ""],
  ])("so is %s: %s", (_form, address) => {
    expect(ruleForAddress(address)).toBe("address_not_public");
  });
});

test.each([
  ["1.0.0.0"],
  ["1.1.1.1"],
  ["8.8.8.8"],
  ["9.255.255.255"],
  ["11.0.0.0"],
  ["100.63.255.255"],
  ["100.128.0.0"],
  ["126.255.255.255"],
  ["128.0.0.0"],
  ["168.63.129.15"],
  ["168.63.129.17"],
  ["169.253.255.255"],
  ["169.255.0.0"],
  ["172.15.255.255"],
  ["172.32.0.0"],
  ["192.0.1.0"],
  ["192.0.3.0"],
  ["192.31.195.255"],
  ["192.52.194.0"],
  ["192.88.98.255"],
  ["192.88.100.0"],
  ["192.167.255.255"],
  ["192.169.0.0"],
  ["192.175.49.0"],
  ["198.17.255.255"],
  ["198.20.0.0"],
  ["198.51.101.0"],
  ["203.0.112.255"],
  ["203.0.114.0"],
  ["223.255.255.255"],
  ["2000::"],
  ["2001:200::"],
  ["2001:db7:ffff::"],
  ["2001:db9::"],
  ["2003::1"],
  ["2606:4700:4700::1111"],
  ["2620:4f:7fff::1"],
  ["2620:4f:8001::1"],
  ["2a00:1450::1"],
  ["3ffd::1"],
  ["3fff:1000::"],
])("%s, a neighbour of the refused ranges or a well-known address, is public", (address) => {
  expect(ruleForAddress(address)).toBe("allowed");
  expect(ruleForAddress(address, "http://receiver.example/")).toBe("http_not_allowed");
});
