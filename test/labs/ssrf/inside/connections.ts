import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type net from "node:net";
import { head } from "../../../support/hostile-receiver.ts";
import { keptAlive, startWorld, type World } from "./world.ts";

/** What a receiver that is public may do with an answer, and what becomes of a connection that is kept. */
const open = "8.8.8.8";
const url = "https://receiver.example/";
const inside = ["127.0.0.1"];

let world: World;
beforeEach(async () => {
  world = await startWorld();
  world.zone = (_name, type) => (type === "A" ? [open] : "NXDOMAIN");
});
afterEach(() => world.stop());

const deliverOne = async (to = url) => (await world.deliver([to])).get(to);
const dialledOnce = [`${open} 443`];
const notPublic = { state: "FAILED", errorReason: `The address of ${url} is not public` };

describe("an answer that redirects is the answer, and nothing is dialled for it:", () => {
  const targets = [
    "http://127.0.0.1:9000/",
    "https://127.0.0.1/",
    "http://[::1]:9000/",
    "http://10.0.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "//169.254.169.254/",
    "https://[::ffff:127.0.0.1]/",
    "https://1.1.1.1/",
    "file:///etc/hostname",
    "javascript:1",
    "",
  ];

  test.each([301, 302, 303, 307, 308])("%i", async (status) => {
    const urls = targets.map((_, n) => `${url}${n}`);
    const locations = targets.values();
    world.answer = (peer) =>
      void peer.end(head(status, `Location: ${locations.next().value}`, "Content-Length: 0", "Connection: close"));
    const records = await world.deliver(urls);
    for (const each of urls) {
      expect(records.get(each)).toMatchObject({ state: "FAILED", errorReason: `HTTP ${status} from ${each}` });
    }
    expect(await world.takeDialled()).toEqual(targets.map(() => `${open} 443`));
  });

  test("200, with every header that names another place", async () => {
    const there = "http://127.0.0.1:9000/";
    const headers = [
      `Location: ${there}`,
      `Refresh: 0; url=${there}`,
      'Alt-Svc: h2="127.0.0.1:443"',
      `Link: <${there}>`,
    ];
    world.answer = (peer) => void peer.end(head(200, ...headers, "Content-Length: 0", "Connection: close"));
    expect(await deliverOne()).toMatchObject({ state: "DELIVERED" });
    expect(await world.takeDialled()).toEqual(dialledOnce);
  });
});

describe("a kept connection", () => {
  /** Ends every connection, in use or not, as the next request comes in on it. */
  const hangUp = (peer: net.Socket) => void peer.end();

  /** Two threads send, each with connections of its own: the first attempt to a webhook is made from one, later ones from both. */
  async function keepConnections() {
    for (let times = 0; times < 2; times += 1) expect(await deliverOne()).toMatchObject({ state: "DELIVERED" });
    await world.takeDialled();
  }

  test("was judged when it was made: it is used on when the name leads inside, and not replaced", async () => {
    await keepConnections();
    world.zone = (_name, type) => (type === "A" ? inside : ["::1"]);
    world.answer = (peer) => void peer.end(head(200, "Content-Length: 0", "Connection: close"));
    expect(await deliverOne()).toMatchObject({ state: "DELIVERED" });
    expect(await world.takeDialled()).toEqual([]);
    expect(await deliverOne()).toMatchObject(notPublic);
    expect(await world.takeDialled()).toEqual([]);
  });

  test("that dies under a request is replaced by one that is judged", async () => {
    await keepConnections();
    world.zone = (_name, type) => (type === "A" ? inside : ["::1"]);
    world.answer = hangUp;
    expect(await deliverOne()).toMatchObject(notPublic);
    expect(await world.takeDialled()).toEqual([]);
  });

  test("that dies under a request is replaced, where it may be", async () => {
    await keepConnections();
    world.answer = (peer) => {
      hangUp(peer);
      world.answer = (next) => void next.write(keptAlive);
    };
    expect(await deliverOne()).toMatchObject({ state: "DELIVERED" });
    expect(await world.takeDialled()).toEqual(dialledOnce);
  });
});
