import { afterEach, describe, expect, test } from "bun:test";
import { type AddressInfo, createServer, type Server } from "node:net";
import { createAddressPolicy } from "../../../src/delivery/network/address.ts";
import { createTransport, type TransportOptions } from "../../../src/delivery/network/transport.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { createAuthority } from "../../support/certificates.ts";
import { type ConnectProxy, startConnectProxy } from "../../support/connect-proxy.ts";
import { bodyOf, expectOutcome } from "../../support/expect-outcome.ts";
import { noResponse, responded } from "../../support/expected-outcome.ts";
import { head, startDeafReceiver, startHostileReceiver, write } from "../../support/hostile-receiver.ts";

const authority = createAuthority("Test authority");
const tls = authority.issue({ hosts: ["receiver.example"] });
const policy = createAddressPolicy({ localMode: false, allowTargets: [], ownListeners: [] });
const localPolicy = createAddressPolicy({ localMode: true, allowTargets: [], ownListeners: [] });
const lanPolicy = createAddressPolicy({ localMode: false, allowTargets: ["10.0.0.0/8"], ownListeners: [] });
const body = Buffer.from("{}");

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function through(proxyUrl: string, options: Partial<TransportOptions> = {}) {
  const transport = createTransport({
    ...{ policy, clock: systemClock, timeoutMs: 3_000, proxyUrl, extraCa: authority.cert },
    ...options,
  });
  closing.push(() => transport.close());
  return (url: string) => transport.send({ url, headers: { "Content-Type": "application/json" }, body });
}

async function receive(options: Parameters<typeof startHostileReceiver>[0]) {
  const receiver = await startHostileReceiver(options);
  closing.push(() => receiver.close());
  return receiver;
}

/** @returns its port */
async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

async function proxyTo(port: number | null): Promise<ConnectProxy> {
  const proxy = await startConnectProxy(port);
  closing.push(() => proxy.stop());
  return proxy;
}

describe("a delivery through a proxy", () => {
  test("has TLS with the receiver inside of a tunnel, and keeps it for the next one", async () => {
    const receiver = await receive({ tls });
    const proxy = await proxyTo(receiver.port);
    const kept: boolean[] = [];
    const send = through(proxy.url.replace("//", "//relay:p%40ss@"), { onConnection: (is) => kept.push(is) });
    for (let i = 0; i < 2; i++) await bodyOf(await send(`https://receiver.example/${i}`));
    // Nobody here has resolved the name.
    expect(proxy.requests).toEqual(["CONNECT receiver.example:443 HTTP/1.1"]);
    expect(proxy.heads[0]).toContain(`\r\nProxy-Authorization: Basic ${btoa("relay:p@ss")}\r\n`);
    expect([receiver.requests(), receiver.connections(), kept]).toEqual([2, 1, [false, true]]);
  });

  test("has no TLS where the webhook has none", async () => {
    const receiver = await receive({});
    const proxy = await proxyTo(receiver.port);
    const send = through(proxy.url, { policy: lanPolicy });
    expectOutcome(await send("http://receiver.lan:9000/hook"), responded(200));
    expect(proxy.requests).toEqual(["CONNECT receiver.lan:9000 HTTP/1.1"]);
  });

  test("goes without it to loopback, which would be the proxy's own", async () => {
    const receiver = await receive({});
    const proxy = await proxyTo(null);
    const send = through(proxy.url, { policy: localPolicy });
    expectOutcome(await send(`http://localhost:${receiver.port}/hook`), responded(200));
    expect(proxy.requests).toEqual([]);
  });

  test("does not take the proxy's address for the receiver's", async () => {
    const receiver = await receive({ tls, onRequest: write(`${head(500, "Content-Length: 0")}`) });
    const send = through((await proxyTo(receiver.port)).url);
    expect(await send("https://receiver.example/")).toMatchObject({ status: 500, head: { address: null } });
  });

  test("checks the receiver's certificate", async () => {
    const receiver = await receive({ tls: authority.issue({ hosts: ["other.example"] }) });
    const send = through((await proxyTo(receiver.port)).url);
    const outcome = await send("https://receiver.example/");
    expectOutcome(outcome, noResponse("tls_failed", "certificate is for another host name"));
    expect(receiver.requests()).toBe(0);
  });

  test.each([
    ["that address is delivered to", "10.1.2.3", responded(200)],
    ["the proxy's is not", "127.0.0.1", noResponse("tls_failed", "certificate is for another host name")],
  ])("to a literal address: whoever has a certificate for %s", async (_, certified, expected) => {
    const receiver = await receive({ tls: authority.issue({ hosts: [certified] }) });
    const send = through((await proxyTo(receiver.port)).url, { policy: lanPolicy });
    expectOutcome(await send("https://10.1.2.3/"), expected);
    expect(receiver.requests()).toBe(expected.kind === "responded" ? 1 : 0);
  });

  test("is judged by its name and by an address in its URL before the proxy hears of it", async () => {
    const proxy = await proxyTo(null);
    const send = through(proxy.url);
    for (const url of ["https://10.0.0.1/", "https://[::1]/", "https://relay.internal/"]) {
      expect(await send(url)).toMatchObject({ cause: "address_not_public" });
    }
    expect(proxy.requests).toEqual([]);
  });
});

describe("a proxy that fails is told from a receiver that does:", () => {
  test("it refuses", async () => {
    const send = through((await proxyTo(null)).url);
    expectOutcome(await send("https://receiver.example/"), noResponse("proxy_failed", "it answered 407"));
  });

  test("nothing listens there", async () => {
    const proxy = await startConnectProxy(null);
    await proxy.stop();
    const send = through(proxy.url);
    expectOutcome(await send("https://receiver.example/"), noResponse("proxy_failed", "it cannot be reached"));
  });

  test("it does not take the connection", async () => {
    const deaf = await startDeafReceiver();
    closing.push(() => deaf.close());
    const send = through(`http://127.0.0.1:${deaf.port}`, { timeoutMs: 1_000 });
    expectOutcome(await send("https://receiver.example/"), noResponse("proxy_failed", "it cannot be reached"));
  });

  test.each([
    ["answers 502", "HTTP/1.1 502 Bad Gateway\r\n\r\n", "it answered 502"],
    ["speaks something else", "220 smtp.example ESMTP\r\n\r\n", "its answer makes no sense"],
    ["speaks for the host", "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "its answer makes no sense"],
    ["hangs up", "", "it closed the connection"],
  ])("it %s", async (_, answer, detail) => {
    const server = createServer((peer) => void peer.once("data", () => peer.end(answer)).on("error", () => {}));
    const port = await listen(server);
    const send = through(`http://127.0.0.1:${port}`);
    expectOutcome(await send("https://receiver.example/"), noResponse("proxy_failed", detail));
  });

  test("it says nothing, and is broken off before the attempt is over", async () => {
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const server = createServer(
      (peer) =>
        void peer
          .on("error", () => {})
          .on("close", () => resolve())
          .resume(),
    );
    const port = await listen(server);
    const send = through(`http://127.0.0.1:${port}`, { timeoutMs: 1_000 });
    expectOutcome(await send("https://receiver.example/"), noResponse("proxy_failed", "it did not answer in time"));
    await ended;
  });
});
