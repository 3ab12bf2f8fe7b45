import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { type AddressPolicyOptions, createAddressPolicy } from "../../src/delivery/network/address.ts";
import { createTransport, type Transport } from "../../src/delivery/network/transport.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { expectOutcome } from "../support/expect-outcome.ts";
import { noResponse, responded } from "../support/expected-outcome.ts";
import { type HostileReceiver, head, startHostileReceiver, write } from "../support/hostile-receiver.ts";
import { type NameAnswer, type NameServer, startNameServer } from "../support/name-server.ts";

/**
 * The canary listens where no delivery may go, and must never hear a connection (hazards, section 1.5). The
 * names are served by our own name server, which answers as an attacker's would.
 */
let canary: HostileReceiver;
let canary6: HostileReceiver;
let names: NameServer;
/** What the name server says of `rebinding.example`, one answer for each question. */
let answers: { A: NameAnswer[]; AAAA: NameAnswer[] };

const fixed: Record<string, string[]> = {
  "A loopback.example": ["127.0.0.1"],
  "A everything.example": ["0.0.0.0"],
  "AAAA loopback6.example": ["::1"],
  "AAAA mapped.example": ["::ffff:127.0.0.1"],
  "A private.example": ["10.0.0.1"],
  "A metadata.example": ["169.254.169.254"],
};

beforeAll(async () => {
  canary = await startHostileReceiver({});
  canary6 = await startHostileReceiver({ host: "::1", port: canary.port });
  names = await startNameServer((name, type) =>
    name === "rebinding.example" ? (answers[type].shift() ?? "NXDOMAIN") : (fixed[`${type} ${name}`] ?? []),
  );
});

const transports: Transport[] = [];
afterEach(() => {
  expect(canary.connections() + canary6.connections()).toBe(0);
});
afterAll(() => {
  for (const transport of transports) transport.close();
  names.close();
  canary.close();
  canary6.close();
});

function newTransport(options: Partial<AddressPolicyOptions> = {}): Transport {
  const policy = createAddressPolicy({ localMode: false, allowTargets: [], ownListeners: [], ...options });
  const transport = createTransport({ policy, clock: systemClock, timeoutMs: 2_000, dnsServers: [names.address] });
  transports.push(transport);
  return transport;
}

const requestTo = (url: string) => ({ url, headers: {}, body: Buffer.from("{}") });

describe("nothing is dialled", () => {
  test.each([
    ["https://127.0.0.1:PORT/"],
    ["https://2130706433:PORT/"],
    ["https://0x7f.1:PORT/"],
    ["https://127。0。0。1:PORT/"],
    ["https://0:PORT/"],
    ["https://[::1]:PORT/"],
    ["https://[::ffff:127.0.0.1]:PORT/"],
    ["https://[::]:PORT/"],
    ["http://127.0.0.1:PORT/"],
    ["http://localhost:PORT/"],
    ["https://localhost:PORT/"],
    ["https://localhost.:PORT/"],
    ["https://example.com@127.0.0.1:PORT/"],
    ["https://127.0.0.1:PORT\\@example.com/"],
    ["https:127.0.0.1:PORT/"],
  ])("for %s, saved before the rule was there", async (url) => {
    const outcome = await newTransport().send(requestTo(url.replace("PORT", String(canary.port))));
    expect(outcome).toMatchObject({ kind: "no-response", cause: "address_not_public" });
  });

  test.each([
    ["loopback.example"],
    ["everything.example"],
    ["loopback6.example"],
    ["mapped.example"],
    ["private.example"],
    ["metadata.example"],
  ])("for the public name %s that resolves to the inside, in either mode", async (name) => {
    for (const localMode of [false, true]) {
      const outcome = await newTransport({ localMode }).send(requestTo(`https://${name}:${canary.port}/`));
      expectOutcome(outcome, noResponse("address_not_public"));
    }
  });

  test("when one of many addresses is forbidden, whichever comes first", async () => {
    const [good, bad] = ["192.88.98.1", "127.0.0.1"];
    for (const mixed of [
      [[good, bad], []],
      [[bad, good], []],
      [[good], ["::1"]],
    ] as const) {
      answers = { A: [[...mixed[0]]], AAAA: [[...mixed[1]]] };
      const outcome = await newTransport().send(requestTo(`https://rebinding.example:${canary.port}/`));
      expectOutcome(outcome, noResponse("address_not_public"));
    }
  });

  test("when a name that was allowed resolves to the inside at the next connection", async () => {
    const receiver = await startHostileReceiver({
      onRequest: write(head(200, "Content-Length: 0", "Connection: close")),
      host: "127.0.0.1",
    });
    const forbidden = await startHostileReceiver({ host: "::1", port: receiver.port });
    const transport = newTransport({ allowTargets: ["127.0.0.1"] });
    const send = () => transport.send(requestTo(`http://rebinding.example:${receiver.port}/`));

    answers = { A: [["127.0.0.1"], "NXDOMAIN", ["127.0.0.1"]], AAAA: ["NXDOMAIN", ["::1"], ["::1"]] };
    expectOutcome(await send(), responded(200));
    expectOutcome(await send(), noResponse("address_not_public", "http not allowed"));
    expectOutcome(await send(), noResponse("address_not_public", "http not allowed"));
    expect(receiver.connections()).toBe(1);
    expect(forbidden.connections()).toBe(0);
    receiver.close();
    forbidden.close();
  });

  test("when an answer redirects to the inside", async () => {
    const location = `Location: http://127.0.0.1:${canary.port}/`;
    const receiver = await startHostileReceiver({ onRequest: write(head(307, location, "Content-Length: 0")) });
    const transport = newTransport({ localMode: true });
    expectOutcome(await transport.send(requestTo(`http://localhost:${receiver.port}/`)), responded(307));
    receiver.close();
  });

  test("of this server itself, under a name the operator allows", async () => {
    const transport = newTransport({
      allowTargets: ["127.0.0.0/8"],
      ownListeners: [{ host: "127.0.0.1", port: canary.port }],
    });
    const outcome = await transport.send(requestTo(`http://loopback.example:${canary.port}/`));
    expectOutcome(outcome, noResponse("address_not_public", "own listener"));
  });
});

test("the canary sings: where it may be reached, the same transport reaches such a listener", async () => {
  const receiver = await startHostileReceiver({});
  const transport = newTransport({ allowTargets: ["127.0.0.0/8"] });
  expectOutcome(await transport.send(requestTo(`http://loopback.example:${receiver.port}/`)), responded(200));
  expect(receiver.connections()).toBe(1);
  receiver.close();
});
