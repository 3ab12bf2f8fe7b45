import { afterEach, describe, expect, test } from "bun:test";
import { hostOf } from "../ranges.ts";
import { startWorld, type World } from "./world.ts";

/** What the operator allows, and what no setting allows, against the real server in public mode. */
let world: World;
afterEach(() => world.stop());

const allowing = (ranges: string) => ({ POSTRIDER_ALLOW_TARGETS: ranges, POSTRIDER_SIGNUP: "closed" });
const states = (records: Awaited<ReturnType<World["deliver"]>>) =>
  Object.fromEntries([...records].map(([url, { state, errorReason }]) => [url, errorReason ?? state]));
const notPublic = (url: string) => [url, `The address of ${url} is not public`] as const;

describe("ranges that the operator allows", () => {
  test("are reached over http and by names, to the first and the last address; their neighbours are not", async () => {
    world = await startWorld({ env: allowing("10.0.0.0/8,192.168.1.20,fd00::/8") });
    world.zone = (name, type) => {
      if (name === "mixed.lan") return type === "A" ? ["10.0.0.1", "127.0.0.1"] : "NXDOMAIN";
      if (name === "half.lan") return type === "A" ? ["10.0.0.1"] : ["fc00::1"];
      if (name === "open.lan") return type === "A" ? ["8.8.8.8"] : "NXDOMAIN";
      return type === "A" ? ["10.9.8.7"] : "NXDOMAIN";
    };
    const reached = ["10.0.0.0", "10.255.255.255", "192.168.1.20", "fd00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"];
    const outside = [
      "9.255.255.255",
      "11.0.0.0",
      "192.168.1.19",
      "192.168.1.21",
      "fcff::1",
      "fe00::",
      "127.0.0.1",
      "::1",
    ];
    const wrapped = ["::ffff:10.0.0.1", "::10.0.0.1", "64:ff9b::10.0.0.1", "2002:a00:1::"];
    const urls = (addresses: readonly string[]) => addresses.map((address) => `http://${hostOf(address)}:9000/`);
    const records = await world.deliver([
      ...urls(reached),
      "http://receiver.lan:9000/",
      ...urls([...outside, ...wrapped]),
      "http://mixed.lan:9000/",
      "http://half.lan:9000/",
      "http://open.lan:9000/",
    ]);
    expect(states(records)).toEqual({
      ...Object.fromEntries([...urls(reached), "http://receiver.lan:9000/"].map((url) => [url, "DELIVERED"])),
      ...Object.fromEntries(urls([...outside, ...wrapped]).map(notPublic)),
      ...Object.fromEntries(
        ["http://mixed.lan:9000/", "http://half.lan:9000/", "http://open.lan:9000/"].map(notPublic),
      ),
    });
    expect((await world.takeDialled()).sort()).toEqual(
      [...reached, "10.9.8.7"].map((address) => `${address} 9000`).sort(),
    );
  });

  test("do not open the metadata services, in whatever form, although everything is allowed", async () => {
    world = await startWorld({ env: allowing("0.0.0.0/0,::/0") });
    const metadata = [
      ...["169.254.169.254", "169.254.170.2", "169.254.0.0", "169.254.255.255", "fd00:ec2::254"],
      ...["::ffff:169.254.169.254", "::169.254.169.254", "::ffff:0:169.254.169.254", "64:ff9b::169.254.169.254"],
      ...["64:ff9b:1::169.254.169.254", "2002:a9fe:a9fe::1"],
    ];
    const named = new Map(metadata.map((address, n) => [`m${n}.lan`, address]));
    world.zone = (name, type) => {
      const address = named.get(name);
      return address?.includes(":") === (type === "AAAA") ? [address] : "NXDOMAIN";
    };
    const literals = metadata.map((address) => `http://${hostOf(address)}/latest/meta-data/`);
    const urls = [...literals, ...[...named.keys()].map((name) => `http://${name}/latest/meta-data/`)];
    expect(states(await world.deliver(urls))).toEqual(Object.fromEntries(urls.map(notPublic)));
    expect(await world.takeDialled()).toEqual([]);

    const others = ["10.0.0.1", "172.16.0.1", "fd00:ec2::253", "169.253.255.255", "64:ff9b::8.8.8.8"];
    const allowed = others.map((address) => `http://${hostOf(address)}/`);
    expect(states(await world.deliver(allowed))).toEqual(Object.fromEntries(allowed.map((url) => [url, "DELIVERED"])));
  });

  test("are closed again by a restart without the setting, for webhooks that were saved", async () => {
    world = await startWorld({ env: allowing("10.0.0.0/8") });
    const urls = ["http://10.1.2.3:9000/", "https://receiver.example/"];
    world.zone = (_name, type) => (type === "A" ? ["10.1.2.3"] : "NXDOMAIN");
    expect(Object.values(states(await world.deliver(urls)))).toEqual(["DELIVERED", "DELIVERED"]);
    await world.restart({ env: {} });
    expect(states(await world.deliver(urls))).toEqual(Object.fromEntries(urls.map(notPublic)));
    expect(await world.takeDialled()).toEqual(["10.1.2.3 9000", "10.1.2.3 443"]);
  });
});

describe("the server's own listener", () => {
  test("is no receiver under any of its names, although its range is allowed", async () => {
    world = await startWorld({ env: allowing("127.0.0.0/8,::1/128") });
    world.zone = (name, type) => {
      if (name === "relay.example.com") return type === "A" ? ["8.8.8.8"] : "NXDOMAIN";
      if (name === "six.lan") return type === "AAAA" ? ["::1"] : "NXDOMAIN";
      return type === "A" ? ["127.0.0.1"] : "NXDOMAIN";
    };
    const own = new URL(world.server.url).port;
    const ways = [
      "127.0.0.1",
      "127.1",
      "2130706433",
      "127.99.0.1",
      "[::1]",
      "localhost",
      "own.lan",
      "own.lan.",
      "six.lan",
    ];
    const urls = [...ways.map((host) => `http://${host}:${own}/v1/ingest`), "https://relay.example.com/hook"];
    expect(states(await world.deliver(urls))).toEqual(Object.fromEntries(urls.map(notPublic)));
    expect(await world.takeDialled()).toEqual([]);

    const beside = ["http://127.0.0.1:9000/", "http://own.lan:9000/", "http://[::1]:9000/"];
    expect(Object.values(states(await world.deliver(beside)))).toEqual(["DELIVERED", "DELIVERED", "DELIVERED"]);
  });
});
