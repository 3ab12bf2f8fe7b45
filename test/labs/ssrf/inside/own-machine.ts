import { afterEach, beforeAll, describe, expect, test } from "bun:test";
import { hostOf } from "../ranges.ts";
import { startWorld, type World } from "./world.ts";

/** Addresses that look public and belong to this very machine, against the real server in public mode. */
const own = ["198.41.5.5", "2a00:1450::5"] as const;
/** Of an interface whose cable is out: the kernel still answers on it, and the list of interfaces leaves it out. */
const withoutCarrier = "198.41.6.6";

const ip = (command: string) => {
  const { success, stderr } = Bun.spawnSync(["ip", ...command.split(" ")], { stderr: "pipe" });
  if (!success) throw new Error(`ip ${command}: ${stderr}`);
};

beforeAll(() => {
  for (const address of own) ip(`addr add ${address} dev lo`);
  ip("link add cable type veth peer name unplugged");
  ip(`addr add ${withoutCarrier}/24 dev cable`);
  ip("link set cable up");
});

let world: World;
afterEach(() => world.stop());

const allowing = (ranges: string) => ({ POSTRIDER_ALLOW_TARGETS: ranges, POSTRIDER_SIGNUP: "closed" });
const notPublic = (url: string) => [url, `The address of ${url} is not public`] as const;
const delivered = (url: string) => [url, "DELIVERED"] as const;
const states = (records: Awaited<ReturnType<World["deliver"]>>) =>
  Object.fromEntries([...records].map(([url, { state, errorReason }]) => [url, errorReason ?? state]));
const register = (webhook_url: string) => world.account.put("/v1/tenants/webhooks", [{ webhook_url }]);

describe("an address of one of the machine's interfaces", () => {
  const addresses = [...own, withoutCarrier];

  test("is dialled neither as a literal nor by a name, on whatever port", async () => {
    world = await startWorld({ hosts: addresses });
    world.zone = (name, type) => {
      const address = { "own.example": own[0], "own6.example": own[1], "cable.example": withoutCarrier }[name];
      return address?.includes(":") === (type === "AAAA") ? [address] : "NXDOMAIN";
    };
    const hosts = [...addresses.map(hostOf), "own.example", "own6.example", "cable.example"];
    const urls = hosts.flatMap((host) => [`https://${host}/`, `https://${host}:8443/`]);
    expect(states(await world.deliver(urls))).toEqual(Object.fromEntries(urls.map(notPublic)));
    expect(await world.takeDialled()).toEqual([]);
  });

  test("cannot be registered", async () => {
    world = await startWorld();
    for (const address of addresses) {
      const { status, body } = await register(`https://${hostOf(address)}:8443/`);
      expect([address, status, body.code]).toEqual([address, 400, "invalid_webhook_url"]);
      expect(body.message).toBe("[0].webhook_url must not be an address of the machine this server runs on.");
    }
  });

  test("stays closed when the operator allows it, by its range or by itself; loopback opens to a range of loopback", async () => {
    const everything = ["0.0.0.0/0", "::/0", ...own];
    world = await startWorld({ env: allowing(everything.join()) });
    const itself = [...addresses, "127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1"];
    const urls = [...itself, `::ffff:${own[0]}`, `64:ff9b::${own[0]}`].map((host) => `http://${hostOf(host)}:9000/`);
    expect(states(await world.deliver(urls))).toEqual(Object.fromEntries(urls.map(notPublic)));
    expect(await world.takeDialled()).toEqual([]);

    await world.restart({ env: allowing("127.0.0.0/8,::1,10.0.0.0/8") });
    const reached = ["http://127.0.0.1:9000/", "http://[::1]:9000/", "http://10.0.0.1:9000/"];
    expect(states(await world.deliver(reached))).toEqual(Object.fromEntries(reached.map(delivered)));
  });

  test("is noticed when it is new: the next connection is refused, and a kept one is not used on", async () => {
    const [url, other] = ["https://8.8.4.4/", "https://receiver.example/"];
    world = await startWorld({ hosts: ["8.8.4.4"] });
    world.zone = (_name, type) => (type === "A" ? ["8.8.4.4"] : "NXDOMAIN");
    // Once from either thread that sends, each of which keeps its connections.
    for (let times = 0; times < 2; times += 1) {
      expect(states(await world.deliver([url, other]))).toEqual(Object.fromEntries([url, other].map(delivered)));
    }
    await world.takeDialled();
    ip("addr add 8.8.4.4 dev lo");
    const until = performance.now() + 10_000;
    let seen = {};
    // Both go on using their connections until the interfaces are looked up again.
    while (
      performance.now() < until &&
      Object.values(seen).join() !== [url, other].map((one) => notPublic(one)[1]).join()
    ) {
      seen = states(await world.deliver([url, other]));
      await Bun.sleep(100);
    }
    expect(seen).toEqual(Object.fromEntries([url, other].map(notPublic)));
    expect(await world.takeDialled()).toEqual([]);
  });
});

describe("an IPv6 range that the operator allows", () => {
  test("opens no IPv4 address inside; what embeds a public one is reached", async () => {
    world = await startWorld({ env: allowing("::/0") });
    const inner = ["127.0.0.1", "10.0.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254"];
    const wrapped = inner.flatMap((address) => [`::ffff:${address}`, `::${address}`, `64:ff9b::${address}`]);
    const urls = [...wrapped, "2002:a00:1::", "2002:7f00:1::"].map((host) => `http://${hostOf(host)}:9000/`);
    expect(states(await world.deliver(urls))).toEqual(Object.fromEntries(urls.map(notPublic)));
    expect(await world.takeDialled()).toEqual([]);
    const open = ["http://[64:ff9b::8.8.8.8]:9000/", "http://[fd12::1]:9000/"];
    expect(states(await world.deliver(open))).toEqual(Object.fromEntries(open.map(delivered)));
  });

  test("beside the IPv4 range that it embeds, opens that", async () => {
    world = await startWorld({ env: allowing("64:ff9b::/96,10.0.0.0/8") });
    const url = "http://[64:ff9b::10.0.0.1]:9000/";
    expect(states(await world.deliver([url]))).toEqual(Object.fromEntries([delivered(url)]));
  });
});

describe("ranges that the operator blocks", () => {
  test("win over those that are allowed and over the public internet, in whatever form, also when saved before", async () => {
    const env = {
      ...allowing("10.0.0.0/8,64:ff9b::/96"),
      POSTRIDER_BLOCK_TARGETS: "10.9.0.0/16,8.8.8.8,2606:4700::/32",
    };
    world = await startWorld({ env });
    world.zone = (name, type) => (name === "named.lan" && type === "A" ? ["10.9.8.7"] : "NXDOMAIN");
    const blocked = [
      ...["http://10.9.0.1:9000/", "https://8.8.8.8/", "https://[2606:4700::1111]/", "http://named.lan:9000/"],
      ...["http://[64:ff9b::10.9.1.1]:9000/", "http://[64:ff9b::8.8.8.8]:9000/"],
    ];
    expect(states(await world.deliver(blocked))).toEqual(Object.fromEntries(blocked.map(notPublic)));
    expect(await world.takeDialled()).toEqual([]);
    const beside = ["http://10.8.255.255:9000/", "http://10.10.0.0:9000/"];
    expect(states(await world.deliver(beside))).toEqual(Object.fromEntries(beside.map(delivered)));
    const { status, body } = await register("http://10.9.0.1:9000/");
    expect([status, body.message]).toEqual([
      400,
      "[0].webhook_url must not be in an address range that this server's operator has blocked.",
    ]);
  });
});

describe("behind a NAT64 whose prefix the resolver uses", () => {
  const prefix = "2a00:1098:2c::";
  const synthesized = [`${prefix}c000:aa`, `${prefix}c000:ab`];

  test("no address under it leads to an IPv4 address inside, one that embeds a public address is reached", async () => {
    const open = [`${prefix}8.8.8.8`, "2a00:1098:2d::10.0.0.1"];
    world = await startWorld({ hosts: [...open, "v4only.example"] });
    world.zone = (name, type) => {
      if (name === "ipv4only.arpa") return type === "AAAA" ? synthesized : ["192.0.0.170", "192.0.0.171"];
      if (name === "v4only.example") return type === "AAAA" ? [`${prefix}8.8.8.8`] : ["8.8.8.8"];
      return name === "inner.example" && type === "AAAA" ? [`${prefix}10.0.0.1`] : "NXDOMAIN";
    };
    const inner = ["10.0.0.1", "127.0.0.1", "169.254.169.254", "192.0.0.170", own[0]];
    const closed = [...inner.map((address) => hostOf(prefix + address)), "inner.example"].map(
      (host) => `https://${host}/`,
    );
    // At registration as at the connection, the first time too.
    for (const url of closed.slice(0, -1)) {
      const { status, body } = await register(url);
      expect([url, status, body.code]).toEqual([url, 400, "invalid_webhook_url"]);
    }
    expect(states(await world.deliver(closed))).toEqual(Object.fromEntries(closed.map(notPublic)));
    expect(await world.takeDialled()).toEqual([]);

    const reached = [...open.map(hostOf), "v4only.example"].map((host) => `https://${host}/`);
    expect(states(await world.deliver(reached))).toEqual(Object.fromEntries(reached.map(delivered)));
  });
});
