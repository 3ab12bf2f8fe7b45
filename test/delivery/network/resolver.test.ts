import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LookupError } from "../../../src/delivery/network/no-response.ts";
import { createResolver, type Resolver } from "../../../src/delivery/network/resolver.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { createManualClock } from "../../support/manual-clock.ts";
import { type NameServer, startNameServer, type Zone } from "../../support/name-server.ts";

const folder = mkdtempSync(join(tmpdir(), "postrider-resolver-"));
const hostsFile = join(folder, "hosts");
const open: (NameServer | Resolver)[] = [];
afterAll(() => {
  for (const one of open) one.close();
  rmSync(folder, { recursive: true });
});

async function resolverFor(zone: Zone, clock = systemClock) {
  const names = await startNameServer(zone);
  const resolver = createResolver({ clock, dnsServers: [names.address], hostsFile });
  open.push(names, resolver);
  return { resolver, names };
}

const failure = (promise: Promise<unknown>) => promise.then(() => undefined).catch((error: unknown) => error);

describe("a name", () => {
  test("has the addresses of both families, IPv4 first", async () => {
    const { resolver } = await resolverFor((_name, type) =>
      type === "A" ? ["192.0.2.1", "192.0.2.2"] : ["2001:db8::1"],
    );
    expect(await resolver.resolve("both.example")).toEqual(["192.0.2.1", "192.0.2.2", "2001:db8::1"]);
  });

  test("has those of one family when the other one fails", async () => {
    const { resolver } = await resolverFor((_name, type) => (type === "A" ? "SERVFAIL" : ["2001:db8::1"]));
    expect(await resolver.resolve("half.example")).toEqual(["2001:db8::1"]);
  });

  test("is asked for again by the next connection, so that a change is seen at once", async () => {
    let n = 0;
    const { resolver } = await resolverFor((_name, type) => (type === "A" ? [`192.0.2.${++n}`] : []));
    expect(await resolver.resolve("changing.example")).toEqual(["192.0.2.1"]);
    expect(await resolver.resolve("changing.example")).toEqual(["192.0.2.2"]);
  });

  test("is asked for once by a burst of connections", async () => {
    const { resolver, names } = await resolverFor((_name, type) => (type === "A" ? ["192.0.2.1"] : []));
    await Promise.all(Array.from({ length: 50 }, () => resolver.resolve("burst.example")));
    expect(names.questions.toSorted()).toEqual(["A burst.example", "AAAA burst.example"]);
  });

  test.each([
    ["does not exist", "NXDOMAIN", "NXDOMAIN", "name does not exist"],
    ["has no address", [], [], "name does not exist"],
    ["has broken name servers", "SERVFAIL", "SERVFAIL", "name servers failed"],
    ["may exist, as only one family says that it does not", "NXDOMAIN", "SERVFAIL", "name servers failed"],
  ] as const)("that %s is a failure of DNS", async (_title, a, aaaa, detail) => {
    const { resolver } = await resolverFor((_name, type) => (type === "A" ? a : aaaa));
    const error = await failure(resolver.resolve("failing.example"));
    expect(error).toBeInstanceOf(LookupError);
    expect(error).toMatchObject({ noResponse: "dns_failed", detail });
  });
});

test("that a name has no address is believed for 30 s, although c-ares would for an hour", async () => {
  const { clock, advance } = createManualClock();
  let answer: string[] = [];
  const { resolver } = await resolverFor((_name, type) => (type === "A" ? answer : []), clock);
  expect(await failure(resolver.resolve("new.example"))).toBeInstanceOf(LookupError);
  answer = ["192.0.2.1"];
  advance(30_001);
  expect(await resolver.resolve("new.example")).toEqual(["192.0.2.1"]);
});

describe("name servers that do not answer", () => {
  test("are given up after 5 s", async () => {
    const { clock, advance } = createManualClock();
    const { resolver } = await resolverFor(() => "silence", clock);
    const failed = failure(resolver.resolve("silent.example"));
    advance(4_999);
    expect(Bun.peek.status(failed)).toBe("pending");
    advance(1);
    expect(await failed).toMatchObject({ noResponse: "dns_failed", detail: "name servers did not answer in time" });
  });

  test("for one family only hold up the other one's addresses for half a second", async () => {
    const { clock, advance, whenSet } = createManualClock();
    const { resolver } = await resolverFor((_name, type) => (type === "A" ? ["192.0.2.1"] : "silence"), clock);
    const resolved = resolver.resolve("half.example");
    await whenSet(500);
    advance(500);
    expect(await resolved).toEqual(["192.0.2.1"]);
  });
});

describe("the hosts file", () => {
  test("comes before the name servers, and is read again after 5 s", async () => {
    writeFileSync(hostsFile, "# a comment\n10.0.0.5\tReceiver receiver.lan # its names\n\nfd00::5 receiver.lan\n");
    const { clock, advance } = createManualClock();
    const { resolver, names } = await resolverFor((_name, type) => (type === "A" ? ["192.0.2.1"] : []), clock);
    expect(await resolver.resolve("receiver")).toEqual(["10.0.0.5"]);
    expect(await resolver.resolve("receiver.lan")).toEqual(["10.0.0.5", "fd00::5"]);
    expect(names.questions).toEqual([]);

    writeFileSync(hostsFile, "");
    expect(await resolver.resolve("receiver")).toEqual(["10.0.0.5"]);
    advance(5_001);
    expect(await resolver.resolve("receiver")).toEqual(["192.0.2.1"]);
  });

  test("is not needed for localhost, which is never asked of anyone", async () => {
    const { resolver, names } = await resolverFor(() => ["192.0.2.1"]);
    expect(await resolver.resolve("localhost")).toEqual(["127.0.0.1", "::1"]);
    expect(names.questions).toEqual([]);
  });
});
