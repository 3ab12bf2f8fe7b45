import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { head } from "../../../support/hostile-receiver.ts";
import type { NameAnswer, Zone } from "../../../support/name-server.ts";
import { startWorld, type World } from "./world.ts";

/** A name server that lies, changes its mind, or does not answer, against the real server in public mode. */
const receivers = ["8.8.8.8", "2606:4700::1111"] as const;
const [open4, open6] = receivers;
const closing = head(200, "Content-Length: 0", "Connection: close");

/** Each name is used by one test, because resolvers remember. */
const hosts = Array.from({ length: 40 }, (_, n) => `name${n}.example`);
const unused = hosts.values();
const nextHost = () => unused.next().value ?? "";

let world: World;
beforeAll(async () => {
  world = await startWorld({ hosts });
  world.answer = (peer) => void peer.end(closing);
});
afterAll(() => world.stop());

const answering =
  (a: NameAnswer, aaaa: NameAnswer): Zone =>
  (_name, type) =>
    type === "A" ? a : aaaa;

async function deliverTo(host: string) {
  const url = `https://${host}/`;
  const record = (await world.deliver([url])).get(url);
  return { record, reason: record?.errorReason?.replace(url, "URL"), dialled: await world.takeDialled() };
}

const refused = { reason: "The address of URL is not public", dialled: [] };
const delivered = (address: string) => ({ reason: undefined, dialled: [`${address} 443`] });
const unresolved = (why: string) => ({ reason: `The host name of URL could not be resolved (${why})`, dialled: [] });
const behind = (addresses: readonly string[], ...aliases: string[]): NameAnswer => ({ aliases, addresses });

describe("a name whose answer", () => {
  const seven = ["8.8.8.1", "8.8.8.2", "8.8.8.3", "8.8.8.4", "8.8.8.5", "8.8.8.6", "8.8.8.7"];
  const mapped = "::ffff:10.0.0.1";
  test.each<[string, NameAnswer, NameAnswer, typeof refused | ReturnType<typeof delivered>]>([
    ["is public is dialled", [open4], "NXDOMAIN", delivered(open4)],
    ["is public in IPv6 only is dialled", "NXDOMAIN", [open6], delivered(open6)],
    ["differs by family, both public, is dialled", [open4], [open6], delivered(open4)],
    ["is public and then private is refused", [open4, "10.0.0.1"], "NXDOMAIN", refused],
    ["is private and then public is refused", ["10.0.0.1", open4], "NXDOMAIN", refused],
    ["is public in IPv4 and private in IPv6 is refused", [open4], ["::1"], refused],
    ["is private in IPv4 and public in IPv6 is refused", ["127.0.0.1"], [open6], refused],
    ["is private as the last of many, beyond what is dialled, is refused", [...seven, "10.0.0.1"], "NXDOMAIN", refused],
    ["is a mapped address beside a public one is refused", [open4], [mapped], refused],
    ["is private, and the other family fails, is refused", ["127.0.0.1"], "SERVFAIL", refused],
    ["is private, and the other family is silent, is refused", ["127.0.0.1"], "silence", refused],
    ["is an alias of what is inside is refused", behind(["127.0.0.1"], "inner.example"), "NXDOMAIN", refused],
    ["is an alias in IPv6 of what is inside is refused", [open4], behind(["::1"], "inner.example"), refused],
    [
      "is a chain of aliases to the inside is refused",
      behind(["169.254.169.254"], "a.example.com", "b.example.net", "metadata.google.internal"),
      "NXDOMAIN",
      refused,
    ],
    [
      "is a chain of aliases to a public address is dialled",
      behind([open4], "a.example.com", "b.example.net"),
      "NXDOMAIN",
      delivered(open4),
    ],
    [
      "is an alias of localhost without an address is unknown",
      behind([], "localhost"),
      "NXDOMAIN",
      unresolved("name does not exist"),
    ],
    ["is SERVFAIL is not dialled", "SERVFAIL", "SERVFAIL", unresolved("name servers failed")],
    ["is NXDOMAIN is not dialled", "NXDOMAIN", "NXDOMAIN", unresolved("name does not exist")],
  ])("%s", async (_title, a, aaaa, expected) => {
    world.zone = answering(a, aaaa);
    expect(await deliverTo(nextHost())).toMatchObject(expected);
  });

  test.each([
    ["the inside is refused", ["127.0.0.1"], refused],
    ["a public address is dialled", [open4], delivered(open4)],
    ["nothing is not dialled", "SERVFAIL", unresolved("name servers failed")],
  ] as const)("is truncated, and over TCP is %s", async (_title, answer, expected) => {
    world.zone = (_name, type, over) => (over === "udp" ? "truncated" : type === "A" ? answer : "NXDOMAIN");
    expect(await deliverTo(nextHost())).toMatchObject(expected);
  });

  test("is noise is not dialled", async () => {
    world.zone = answering("noise", "noise");
    const { reason, dialled } = await deliverTo(nextHost());
    expect(reason).toMatch(
      /^The host name of URL could not be resolved \(name servers (did not answer in time|failed)\)$/,
    );
    expect(dialled).toEqual([]);
  });

  test("never comes, over UDP or over TCP, is given up after 5 s at the latest", async () => {
    const silent = nextHost();
    const late = nextHost();
    world.zone = (name, _type, over) => (name === late && over === "udp" ? "truncated" : "silence");
    const urls = [silent, late].map((host) => `https://${host}/`);
    const startedAt = performance.now();
    const records = await world.deliver(urls);
    expect(performance.now() - startedAt).toBeLessThan(5_500);
    for (const url of urls) {
      const errorReason = `The host name of ${url} could not be resolved (name servers did not answer in time)`;
      expect(records.get(url)).toMatchObject({ state: "FAILED", errorReason });
    }
    expect(await world.takeDialled()).toEqual([]);
  });
});

describe("a name that is bound anew", () => {
  test("with every question, to a public and to a private address in turn, is dialled at the public one only", async () => {
    let asked = 0;
    world.zone = (_name, type) => {
      if (type === "AAAA") return "NXDOMAIN";
      asked += 1;
      return asked % 2 === 1 ? [open4] : ["127.0.0.1"];
    };
    const host = nextHost();
    for (let n = 0; n < 10; n += 1) {
      expect(await deliverTo(host)).toMatchObject(n % 2 === 0 ? delivered(open4) : refused);
    }
    // What was judged is what is dialled: an attempt that asked again would have been told something else.
    expect(asked).toBe(10);
  });

  test("in the other family is refused from then on", async () => {
    const host = nextHost();
    world.zone = answering([open4], "NXDOMAIN");
    expect(await deliverTo(host)).toMatchObject(delivered(open4));
    world.zone = answering([open4], ["fd00:ec2::254"]);
    expect(await deliverTo(host)).toMatchObject(refused);
    world.zone = answering("NXDOMAIN", ["fd00:ec2::254"]);
    expect(await deliverTo(host)).toMatchObject(refused);
    world.zone = answering([open4], [open6]);
    expect(await deliverTo(host)).toMatchObject(delivered(open4));
  });

  test("while many deliveries go to it is never dialled inside", async () => {
    const host = nextHost();
    let asked = 0;
    const inner = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "0.0.0.0"];
    world.zone = (_name, type) => {
      if (type === "AAAA") return "NXDOMAIN";
      asked += 1;
      return asked % 3 === 0 ? [open4] : [inner[asked % inner.length] ?? ""];
    };
    const urls = Array.from({ length: 50 }, (_, n) => `https://${host}/${n}`);
    for (let round = 0; round < 5; round += 1) await world.deliver(urls);
    const dialled = new Set(await world.takeDialled());
    expect([...dialled]).toEqual([`${open4} 443`]);
  });
});
