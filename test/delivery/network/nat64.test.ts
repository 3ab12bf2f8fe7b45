import { describe, expect, test } from "bun:test";
import { createNat64, prefixesIn } from "../../../src/delivery/network/nat64.ts";
import { facesOf, parseAddress } from "../../../src/delivery/network/public-address.ts";
import { createManualClock } from "../../support/manual-clock.ts";

const facesIn = (address: string, synthesized: readonly string[]) => {
  const parsed = parseAddress(address);
  return parsed && facesOf(parsed, prefixesIn(synthesized)).slice(1).map(String);
};

describe("the prefix that made an address of ipv4only.arpa", () => {
  // RFC 6052, section 2.4, with 192.0.0.170 and .171 in place of its 192.0.2.33.
  test.each([
    [32, "2001:db8:c000:aa::", "2001:db8:a09:807::"],
    [40, "2001:db8:1c0:0:ab::", "2001:db8:10a:908:7::"],
    [48, "2001:db8:122:c000:0:aa00::", "2001:db8:122:a09:8:700::"],
    [56, "2001:db8:122:3c0:0:ab::", "2001:db8:122:30a:9:807::"],
    [64, "2001:db8:122:344:c0:0:aa00::", "2001:db8:122:344:a:908:700::"],
    [96, "2001:db8:122:344::192.0.0.171", "2001:db8:122:344::10.9.8.7"],
  ])("of %i bits is found, and what it embeds", (length, synthesized, address) => {
    expect(prefixesIn([synthesized]).map(({ range }) => range[1])).toEqual([length]);
    expect(facesIn(address, [synthesized])).toEqual(["10.9.8.7"]);
  });

  test("is found once, from both addresses; a resolver may have several", () => {
    const both = ["64:ff9b::192.0.0.170", "64:ff9b::192.0.0.171", "2a00:1098:2c::192.0.0.170"];
    expect(prefixesIn(both).map(({ range }) => range.join("/"))).toEqual(["64:ff9b::/96", "2a00:1098:2c::/96"]);
  });

  test.each([["::1"], ["2a00:1098:2c::192.0.0.172"], ["192.0.0.170"], ["2606:4700::1111"], ["no address"]])(
    "is not there for %s",
    (address) => expect(prefixesIn([address])).toEqual([]),
  );

  test("says what is inside the range for local use, instead of the list", () => {
    expect(facesIn("64:ff9b:1:a09:8:700::", [])).toEqual(["0.0.0.0"]);
    expect(facesIn("64:ff9b:1:a09:8:700::", ["64:ff9b:1:c000:0:aa00::"])).toEqual(["10.9.8.7"]);
  });
});

describe("the prefixes of the network", () => {
  function watched(answer: () => Promise<readonly string[]>) {
    const time = createManualClock();
    const asked: string[] = [];
    const nat64 = createNat64({
      clock: time.clock,
      resolve6(name) {
        asked.push(name);
        return answer();
      },
    });
    return { ...time, nat64, asked, lengths: () => nat64.prefixes().map(({ range }) => range[1]) };
  }

  test("are asked for once by all who need them, and again after five minutes", async () => {
    const answers = [["2a00:1098:2c::192.0.0.170"], []];
    const { nat64, asked, lengths, advance } = watched(async () => answers.shift() ?? []);
    await Promise.all([nat64.learn(), nat64.learn(), nat64.learn()]);
    expect(lengths()).toEqual([96]);
    expect(nat64.learn()).toBeUndefined();
    advance(5 * 60_000);
    await nat64.learn();
    expect(lengths()).toEqual([]);
    expect(asked).toEqual(["ipv4only.arpa", "ipv4only.arpa"]);
  });

  test("stay as they are when the name servers fail, which are asked again after half a minute", async () => {
    let fails = false;
    const { nat64, asked, lengths, advance } = watched(async () => {
      if (fails) throw new Error("name servers failed");
      return ["2a00:1098:2c::192.0.0.170"];
    });
    await nat64.learn();
    fails = true;
    advance(5 * 60_000);
    await nat64.learn();
    expect(lengths()).toEqual([96]);
    expect(nat64.learn()).toBeUndefined();
    advance(30_000);
    await nat64.learn();
    expect(asked.length).toBe(3);
  });

  test("are waited for two seconds, and taken when they come later", async () => {
    const late = Promise.withResolvers<readonly string[]>();
    const { nat64, lengths, advance, timers } = watched(() => late.promise);
    const learning = nat64.learn();
    advance(2_000);
    await learning;
    expect(lengths()).toEqual([]);
    late.resolve(["2a00:1098:2c::192.0.0.170"]);
    await nat64.learn();
    expect(lengths()).toEqual([96]);
    expect(timers.size).toBe(0);
  });
});
