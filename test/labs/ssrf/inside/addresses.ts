import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import net from "node:net";
import type { Zone } from "../../../support/name-server.ts";
import {
  hostOf,
  insideOf,
  isUndiallable,
  plainly,
  publicNeighboursOf,
  rows4,
  rows6,
  wellKnownPublic,
} from "../ranges.ts";
import { plainPorts, startWorld, tlsPorts, type World } from "./world.ts";

/**
 * Every row of the tables of ranges, through the real delivery path: a webhook whose URL names the address, and one whose
 * name resolves to it. The canary is the whole network.
 */
const rows = [...rows4, ...rows6];
const ports = [...tlsPorts, ...plainPorts];
const open = [...new Set([...rows.flatMap(publicNeighboursOf), ...wellKnownPublic].map(plainly))];

/** Names for addresses: `n3.example` is the third. Each list has names of its own, because resolvers remember. */
function nameAll(addresses: readonly string[], prefix: string): { hosts: string[]; zone: Zone } {
  const hosts = addresses.map((_, n) => `${prefix}${n}.example`);
  return {
    hosts,
    zone(name, type) {
      const address = addresses[hosts.indexOf(name)];
      return address !== undefined && address.includes(":") === (type === "AAAA") ? [address] : "NXDOMAIN";
    },
  };
}

const openNames = nameAll(open, "open");
let world: World;
beforeAll(async () => {
  world = await startWorld({ hosts: [...open, ...openNames.hosts] });
});
afterAll(() => world.stop());

describe("no delivery goes to", () => {
  test.each(rows.map((row, n) => [row.range, row.why, row, n] as const))("%s, %s", async (_range, _why, row, n) => {
    const addresses = insideOf(row);
    const { hosts, zone } = nameAll(addresses, `row${n}-`);
    world.zone = zone;
    const literals = addresses.flatMap((address) => [
      ...tlsPorts.map((port) => `https://${hostOf(address)}:${port}/`),
      ...plainPorts.map((port) => `http://${hostOf(address)}:${port}/`),
    ]);
    const named = hosts.flatMap((host) => ports.map((port) => `https://${host}:${port}/`));
    const records = await world.deliver([...literals, ...named]);
    for (const url of [...literals, ...named]) {
      expect(records.get(url)).toMatchObject({ state: "FAILED", errorReason: `The address of ${url} is not public` });
    }
    expect(await world.takeDialled()).toEqual([]);
  });

  test.each(rows.map((row) => [row.range, row] as const))("%s, and it cannot be registered", async (_range, row) => {
    for (const address of insideOf(row)) {
      const answer = await world.account.put("/v1/tenants/webhooks", [{ webhook_url: `https://${hostOf(address)}/` }]);
      expect([address, answer.status, answer.body.code]).toEqual([address, 400, "invalid_webhook_url"]);
      expect(answer.body.message).toContain("must have a public address");
    }
  });
});

test("the canary would notice: dialled directly, it hears of every vector but those the kernel refuses", async () => {
  for (const row of rows) {
    for (const address of insideOf(row)) {
      for (const port of ports) await dial(address, port);
      const heard = await world.takeDialled();
      expect([address, heard.length]).toEqual([address, isUndiallable(row, address) ? 0 : ports.length]);
    }
  }
});

describe("a delivery goes to", () => {
  test("every public neighbour of the ranges, and to that very address", async () => {
    const urls = open.map((address) => `https://${hostOf(address)}/`);
    const records = await world.deliver(urls);
    for (const url of urls) expect(records.get(url)).toMatchObject({ state: "DELIVERED", errorReason: null });
    expect((await world.takeDialled()).sort()).toEqual(open.map((address) => `${address} 443`).sort());
  });

  test("every name that resolves to one, and to that very address", async () => {
    world.zone = openNames.zone;
    const urls = openNames.hosts.map((host) => `https://${host}:8443/`);
    const records = await world.deliver(urls);
    for (const url of urls) expect(records.get(url)).toMatchObject({ state: "DELIVERED", errorReason: null });
    expect((await world.takeDialled()).sort()).toEqual(open.map((address) => `${address} 8443`).sort());
  });
});

/** Resolves when the connection has been made and closed, or could not be made. */
const dial = (address: string, port: number) =>
  new Promise<void>((resolve) => {
    const socket = net.connect(port, address, () => socket.end());
    socket.on("error", () => resolve());
    socket.on("close", () => resolve());
  });
