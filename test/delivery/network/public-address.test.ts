import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createAddressPolicy } from "../../../src/delivery/network/address.ts";
import {
  boundsOf,
  hostOf,
  insideOf,
  publicNeighboursOf,
  rows4,
  rows6,
  wellKnownPublic,
} from "../../labs/ssrf/ranges.ts";

/** The ranges of hazards, section 1.1, asked through the policy: a list that nothing asks would protect no one. */
const policy = createAddressPolicy({ localMode: false, allowTargets: [], ownListeners: [] });

const ruleForAddress = (address: string, target = "https://receiver.example/") => {
  const verdict = policy.checkAddress(address, new URL(target));
  return verdict.ok ? "allowed" : verdict.rule;
};

describe("an address of a special-purpose range is refused", () => {
  test.each([...rows4, ...rows6].map((row) => [row.range, row.why, row] as const))("%s, %s", (range, _why, row) => {
    for (const address of insideOf(row)) {
      expect([address, ruleForAddress(address)]).toEqual([address, "address_not_public"]);
      expect(policy.checkUrl(`https://${hostOf(address)}/`).ok).toBe(false);
    }
    const { first, last, format } = boundsOf(range);
    fc.assert(
      fc.property(fc.bigInt(first, last).map(format), (address) => ruleForAddress(address) === "address_not_public"),
    );
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

test.each([...[...rows4, ...rows6].flatMap(publicNeighboursOf), ...wellKnownPublic])(
  "%s, a neighbour of the refused ranges or a well-known address, is public",
  (address) => {
    expect(ruleForAddress(address)).toBe("allowed");
    expect(ruleForAddress(address, "http://receiver.example/")).toBe("http_not_allowed");
  },
);
