import { describe, expect, test } from "bun:test";
import { createClientAddress } from "../../src/http/client-address.ts";
import { clientKey, clientNetwork } from "../../src/lib/cidr.ts";

const proxy = "127.0.0.1";
const clientAddress = createClientAddress(["127.0.0.0/8", "::1", "10.0.0.0/8", "2001:db8:ffff::/48"]);
const behindProxy = (forwarded: string | null, socket = proxy) =>
  clientAddress(socket, new Headers(forwarded === null ? {} : { "X-Forwarded-For": forwarded }));

describe("behind a trusted proxy the client is", () => {
  test.each([
    // What it says, as it is and as some proxies write it.
    ["203.0.113.9", "203.0.113.9"],
    [" 203.0.113.9 ", "203.0.113.9"],
    ["203.0.113.9:50123", "203.0.113.9"],
    ["203.0.113.9:0", "203.0.113.9"],
    ["203.0.113.9:", "203.0.113.9"],
    ['"203.0.113.9:50123"', "203.0.113.9"],
    ["2001:db8::9", "2001:db8::9"],
    ["2001:DB8:0:0::9", "2001:db8::9"],
    ["[2001:db8::9]", "2001:db8::9"],
    ["[2001:db8::9]:50123", "2001:db8::9"],
    ['"[2001:db8::9]:50123"', "2001:db8::9"],
    ["2001:db8::9:5012", "2001:db8::9:5012"], // without brackets the end is no port
    ["::ffff:203.0.113.9", "203.0.113.9"],
    ["[::ffff:203.0.113.9]:50123", "203.0.113.9"],
    ["fe80::9%eth0", "fe80::9"],
    // The right-most address that is not a proxy's; what stands further left was written by strangers.
    ["1.1.1.1, 203.0.113.9", "203.0.113.9"],
    ["1.1.1.1, 203.0.113.9:50123, 10.0.0.1:443, 127.0.0.1", "203.0.113.9"],
    ["203.0.113.9, [2001:db8:ffff::1]:443", "203.0.113.9"],
    ["203.0.113.9, ::ffff:10.0.0.1", "203.0.113.9"],
    ["203.0.113.9,,10.0.0.1, ", "203.0.113.9"],
    ["garbage, 203.0.113.9", "203.0.113.9"],
    // What says nothing, or nothing that can be relied on, leaves the proxy itself.
    [null, proxy],
    ["", proxy],
    [" , ,", proxy],
    ["10.0.0.1, 127.0.0.1", proxy],
    ["unknown", proxy],
    ["_obf", proxy],
    ["203.0.113.9:_port", proxy],
    ["203.0.113.9:123456", proxy],
    ["203.0.113.9:50123:1", proxy],
    ["for=203.0.113.9", proxy],
    ["client.example", proxy],
    ["203.0.113", proxy],
    ["3405803785", proxy],
    ["0xcb.0.0x71.9", proxy],
    ["0313.0.0161.011", proxy],
    ["203.0.113.256", proxy],
    ["[203.0.113.9]:1", proxy],
    ["[2001:db8::9", proxy],
    ["2001:db8::9]", proxy],
    ["[2001:db8::9]x", proxy],
    ['"203.0.113.9', proxy],
    ["1.1.1.1, unknown", proxy],
    ["1.1.1.1, _hidden, 10.0.0.1", proxy],
    ["9".repeat(50), proxy],
  ])("X-Forwarded-For: %p: %s", (forwarded, address) => {
    expect(behindProxy(forwarded)).toBe(address);
  });

  test("the one in several headers, which count as one list", () => {
    const headers = new Headers([
      ["X-Forwarded-For", "1.1.1.1, 203.0.113.9:1"],
      ["X-Forwarded-For", "10.0.0.1"],
    ]);
    expect(clientAddress(proxy, headers)).toBe("203.0.113.9");
  });

  test("the socket's when nobody is trusted, or it is not a proxy's, in its one spelling", () => {
    expect(createClientAddress([])(proxy, new Headers({ "X-Forwarded-For": "1.1.1.1" }))).toBe(proxy);
    expect(behindProxy("1.1.1.1", "198.51.100.1")).toBe("198.51.100.1");
    expect(behindProxy("1.1.1.1", "::ffff:198.51.100.1")).toBe("198.51.100.1");
    expect(behindProxy("1.1.1.1", "2001:DB8::1")).toBe("2001:db8::1");
    expect(behindProxy("1.1.1.1", "::ffff:127.0.0.1")).toBe("1.1.1.1");
    expect(behindProxy("1.1.1.1", "")).toBe("");
  });
});

describe("limits and turns count", () => {
  test.each([
    ["203.0.113.9", "203.0.113.9", "203.0.113"],
    ["::ffff:203.0.113.9", "203.0.113.9", "203.0.113"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64", "32.1.13.184.0.1"],
    ["2001:db8:1:2::", "2001:db8:1:2::/64", "32.1.13.184.0.1"],
    ["2001:db8:1:3::1", "2001:db8:1:3::/64", "32.1.13.184.0.1"],
    ["2001:db8:2:2::1", "2001:db8:2:2::/64", "32.1.13.184.0.2"],
    ["::1", "::/64", "0.0.0.0.0.0"],
    ["", "", ""],
  ])("%p by %p, and its network by %p", (address, key, network) => {
    expect([clientKey(address), clientNetwork(address)]).toEqual([key, network]);
  });
});
