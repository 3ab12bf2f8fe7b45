import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type net from "node:net";
import type { TLSSocket } from "node:tls";
import { createAddressPolicy } from "../../../src/delivery/network/address.ts";
import { createTransport, type Transport, type TransportOptions } from "../../../src/delivery/network/transport.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { type Certificate, createAuthority, createSelfSigned } from "../../support/certificates.ts";
import { bodyOf, expectElapsed, expectOutcome, testTimeoutMs } from "../../support/expect-outcome.ts";
import { noResponse, responded } from "../../support/expected-outcome.ts";
import { answerOk, head, startDeafReceiver, startHostileReceiver, write } from "../../support/hostile-receiver.ts";
import { startNameServer } from "../../support/name-server.ts";

const authority = createAuthority("Test authority");
const localPolicy = createAddressPolicy({ localMode: true, allowTargets: [], ownListeners: [] });
const lanPolicy = createAddressPolicy({ localMode: false, allowTargets: ["127.0.0.0/8"], ownListeners: [] });
const body = Buffer.from('{"eventId":"evt_1","payload":{"a":1.0}}');

const transports: Transport[] = [];
afterAll(() => {
  for (const transport of transports) transport.close();
});

function newTransport(options: Partial<TransportOptions> = {}): Transport {
  const transport = createTransport({ policy: localPolicy, clock: systemClock, timeoutMs: 5_000, ...options });
  transports.push(transport);
  return transport;
}

const requestTo = (url: string, headers: Record<string, string> = {}) => ({ url, headers, body });

async function withEnvironment(variables: Record<string, string>, run: () => Promise<void>) {
  const before = Object.keys(variables).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, variables);
  try {
    await run();
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
}

describe("a request", () => {
  /** The bytes that arrive, and the answer. */
  async function capture(transport: Transport, request: (port: number) => ReturnType<typeof requestTo>) {
    let text = "";
    const receiver = await startHostileReceiver({
      onConnection(peer) {
        peer.on("data", (data: Buffer) => {
          text += data.toString("latin1");
          if (text.endsWith(body.toString("latin1"))) answerOk(peer, 1);
        });
      },
    });
    const outcome = await transport.send(request(receiver.port));
    receiver.close();
    return { text, outcome, port: receiver.port };
  }

  test("is a POST of the very bytes, with the headers as given", async () => {
    const { text, outcome, port } = await capture(newTransport(), (port) =>
      requestTo(`http://127.0.0.1:${port}/hook/%C3%A4?b=c&d=%20`, {
        "Content-Type": "application/json",
        "Service-Event-Id": "evt_1",
        "webhook-id": "evt_1",
      }),
    );
    expectOutcome(outcome, responded(200));
    expect(text).toBe(
      [
        "POST /hook/%C3%A4?b=c&d=%20 HTTP/1.1",
        `Host: 127.0.0.1:${port}`,
        "Content-Type: application/json",
        "Service-Event-Id: evt_1",
        "webhook-id: evt_1",
        `Content-Length: ${body.length}`,
        "Connection: keep-alive",
        "",
        body.toString(),
      ].join("\r\n"),
    );
  });

  test("to a URL without a path goes to /", async () => {
    const { text } = await capture(newTransport(), (port) => requestTo(`http://127.0.0.1:${port}`));
    expect(text).toStartWith("POST / HTTP/1.1\r\n");
  });

  test("with a line break in a header is the caller's fault, and is not sent", async () => {
    const receiver = await startHostileReceiver({});
    const request = requestTo(`http://127.0.0.1:${receiver.port}/`, { Label: "a\r\nEvil: b" });
    expect(newTransport().send(request)).rejects.toThrow(TypeError);
    expect(receiver.connections()).toBe(0);
    receiver.close();
  });

  test("ignores the proxies of the environment", async () => {
    const proxy = await startHostileReceiver({ onRequest: write(head(502, "Content-Length: 0")) });
    const names = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "NODE_USE_ENV_PROXY"];
    const before = names.map((name) => process.env[name]);
    for (const name of names)
      process.env[name] = name === "NODE_USE_ENV_PROXY" ? "1" : `http://127.0.0.1:${proxy.port}`;
    try {
      const { outcome } = await capture(newTransport(), (port) => requestTo(`http://127.0.0.1:${port}/`));
      expectOutcome(outcome, responded(200));
    } finally {
      for (const [i, name] of names.entries()) {
        if (before[i] === undefined) delete process.env[name];
        else process.env[name] = before[i];
      }
    }
    expect(proxy.connections()).toBe(0);
    proxy.close();
  });
});

describe("an address", () => {
  test.each([
    ["127.0.0.1", "http"],
    ["127.0.0.1", "https"],
    ["[::1]", "http"],
    ["[::1]", "https"],
    ["localhost", "http"],
    ["localhost", "https"],
  ])("%s is reached over %s", async (host, scheme) => {
    const certificate = authority.issue({ hosts: ["localhost", "127.0.0.1", "::1"] });
    const receiver = await startHostileReceiver({
      host: host === "[::1]" ? "::1" : "127.0.0.1",
      tls: scheme === "https" ? certificate : undefined,
    });
    const outcome = await newTransport({ extraCa: authority.cert }).send(
      requestTo(`${scheme}://${host}:${receiver.port}/`),
    );
    expect(await bodyOf(outcome)).toBe("ok");
    receiver.close();
  });

  test("of a name is asked of the given name servers, and the name is in the handshake and the Host header", async () => {
    const names = await startNameServer((name, type) =>
      name === "receiver.example" && type === "A" ? ["127.0.0.1"] : [],
    );
    const certificate = authority.issue({ hosts: ["receiver.example"] });
    const servernames: unknown[] = [];
    const receiver = await startHostileReceiver({
      tls: certificate,
      onConnection(peer) {
        servernames.push((peer as net.Socket & { servername?: unknown }).servername);
        let text = "";
        peer.on("data", (data: Buffer) => {
          text += data.toString();
          if (text.includes("payload")) peer.end(`${head(200)}${/Host: .*/.exec(text)}`);
        });
      },
    });
    const transport = newTransport({ policy: lanPolicy, dnsServers: [names.address], extraCa: authority.cert });
    for (const host of ["receiver.example", "receiver.example."]) {
      const outcome = await transport.send(requestTo(`https://${host}:${receiver.port}/`));
      expect(await bodyOf(outcome)).toBe(`Host: ${host}:${receiver.port}`);
    }
    expect(servernames).toEqual(["receiver.example", "receiver.example"]);
    names.close();
    receiver.close();
  });

  test("that does not answer leaves it to the next one of the name", async () => {
    const receiver = await startHostileReceiver({ host: "::1" });
    const names = await startNameServer((_name, type) => (type === "A" ? ["127.0.0.1"] : ["::1"]));
    const policy = createAddressPolicy({ localMode: false, allowTargets: ["127.0.0.1", "::1"], ownListeners: [] });
    const transport = newTransport({ policy, dnsServers: [names.address] });
    expectOutcome(await transport.send(requestTo(`http://receiver.lan:${receiver.port}/`)), responded(200));
    names.close();
    receiver.close();
  });

  test("of a name that does not exist is a failure of DNS", async () => {
    const names = await startNameServer(() => "NXDOMAIN");
    const transport = newTransport({ policy: lanPolicy, dnsServers: [names.address] });
    const outcome = await transport.send(requestTo("http://receiver.example/"));
    expectOutcome(outcome, noResponse("dns_failed", "name does not exist"));
    names.close();
  });
});

// Elsewhere a full queue of connections is answered with a reset, or is not full so soon.
describe.if(process.platform === "linux")("an address that does not take the connection", () => {
  let deaf: Awaited<ReturnType<typeof startDeafReceiver>>;
  beforeAll(async () => {
    deaf = await startDeafReceiver();
  });
  afterAll(() => deaf.close());

  test.concurrent.each(["http", "https"])("uses up the time over %s", async (scheme) => {
    const transport = newTransport({ timeoutMs: testTimeoutMs });
    const outcome = await transport.send(requestTo(`${scheme}://127.0.0.1:${deaf.port}/hook`));
    expectOutcome(outcome, noResponse("timeout"));
    expectElapsed(outcome.durationMs, true);
  });

  test("leaves the answer to the next address of its name, after half a second", async () => {
    const receiver = await startHostileReceiver({ host: "::1", port: deaf.port });
    const outcome = await newTransport().send(requestTo(`http://localhost:${deaf.port}/hook`));
    expectOutcome(outcome, responded(200));
    expect(outcome.durationMs).toBeWithin(450, 5_000);
    receiver.close();
  });
});

describe("certificates", () => {
  test("are checked although the environment says otherwise, and with no extra authority", async () => {
    const receiver = await startHostileReceiver({ tls: authority.issue({ hosts: ["127.0.0.1"] }) });
    await withEnvironment({ NODE_TLS_REJECT_UNAUTHORIZED: "0" }, async () => {
      const outcome = await newTransport().send(requestTo(`https://127.0.0.1:${receiver.port}/`));
      expectOutcome(outcome, noResponse("tls_failed", "certificate chain is incomplete or its authority is unknown"));
    });
    expect(receiver.requests()).toBe(0);
    receiver.close();
  });
});

describe("connections", () => {
  test.each(["http", "https"])("are kept and used again over %s", async (scheme) => {
    const tls = scheme === "https" ? authority.issue({ hosts: ["127.0.0.1"] }) : undefined;
    const receiver = await startHostileReceiver({ tls });
    const reused: boolean[] = [];
    const transport = newTransport({ extraCa: authority.cert, onConnection: (kept) => reused.push(kept) });
    for (let i = 0; i < 3; i++) {
      await bodyOf(await transport.send(requestTo(`${scheme}://127.0.0.1:${receiver.port}/${i}`)));
    }
    expect(reused).toEqual([false, true, true]);
    expect(receiver.connections()).toBe(1);
    receiver.close();
  });

  /** Whether each of three requests resumed the session of the one before; the host closes after each answer. */
  async function resumedBy(tls: Certificate): Promise<boolean[]> {
    const resumed: boolean[] = [];
    const receiver = await startHostileReceiver({
      tls,
      onRequest(peer) {
        resumed.push((peer as TLSSocket).isSessionReused());
        peer.end(head(200, "Content-Length: 0", "Connection: close"));
      },
    });
    const transport = newTransport({ extraCa: authority.cert });
    for (let i = 0; i < 3; i++) {
      await bodyOf(await transport.send(requestTo(`https://127.0.0.1:${receiver.port}/${i}`)));
    }
    receiver.close();
    return resumed;
  }

  test("that a host closes after each answer resume their TLS session", async () => {
    expect(await resumedBy(authority.issue({ hosts: ["127.0.0.1"] }))).toEqual([false, true, true]);
  });

  test("keep no TLS session of a host that fills it with certificates", async () => {
    const { cert, key } = authority.issue({ hosts: ["127.0.0.1"] });
    const filler = createSelfSigned({ hosts: Array.from({ length: 1_000 }, (_, i) => `host-${i}.example`) });
    expect(await resumedBy({ cert: cert + filler.cert, key })).toEqual([false, false, false]);
  });

  test("have no limit: five hundred wait at once for one host", async () => {
    const waiting: net.Socket[] = [];
    const receiver = await startHostileReceiver({
      onRequest(peer) {
        waiting.push(peer);
        if (waiting.length === 500) for (const one of waiting) answerOk(one, 1);
      },
    });
    const transport = newTransport();
    const url = `http://127.0.0.1:${receiver.port}/`;
    const outcomes = await Promise.all(Array.from({ length: 500 }, () => transport.send(requestTo(url))));
    expect(outcomes.every((outcome) => outcome.kind === "responded")).toBe(true);
    receiver.close();
  });
});
