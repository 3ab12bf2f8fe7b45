import { afterAll, describe, expect, test } from "bun:test";
import type net from "node:net";
import type tls from "node:tls";
import { createAddressPolicy } from "../../src/delivery/address.ts";
import { createTransport } from "../../src/delivery/transport.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createAuthority, createSelfSigned } from "../support/certificates.ts";
import {
  type Expected,
  expectElapsed,
  expectReply,
  noResponse,
  responded,
  testTimeoutMs,
} from "../support/expect-reply.ts";
import { head, startHostileReceiver } from "../support/hostile-receiver.ts";

const authority = createAuthority("Test authority");
const certificate = authority.issue({ hosts: ["127.0.0.1"] });
const policy = createAddressPolicy({ localMode: true, allowTargets: [], ownListeners: [] });
const body = Buffer.from('{"eventId":"evt_1"}');

const transport = createTransport({ policy, clock: systemClock, timeoutMs: testTimeoutMs, extraCa: authority.cert });
afterAll(() => transport.close());

describe("a receiver whose TLS", () => {
  const hosts = ["127.0.0.1"];
  const past = (hours: number) => new Date(Date.now() - hours * 3_600_000);
  const middle = authority.issueAuthority("Intermediate authority");
  const chained = middle.issue({ hosts });
  const incomplete = "certificate chain is incomplete or its authority is unknown";

  test.each<[string, tls.TlsOptions, Expected]>([
    ["is as it should be answers", certificate, responded(200)],
    ["has the whole chain answers", { ...chained, cert: chained.cert + middle.cert }, responded(200)],
    ["speaks 1.2 at most answers", { ...certificate, maxVersion: "TLSv1.2" }, responded(200)],
    [
      "has an expired certificate is refused",
      authority.issue({ hosts, notBefore: past(2), notAfter: past(1) }),
      noResponse("tls", "certificate has expired"),
    ],
    [
      "has a certificate of the future is refused",
      authority.issue({ hosts, notBefore: past(-1), notAfter: past(-2) }),
      noResponse("tls", "certificate is not valid yet"),
    ],
    [
      "has a self-signed certificate is refused",
      createSelfSigned({ hosts }),
      noResponse("tls", "certificate is self-signed"),
    ],
    [
      "has a certificate of an unknown authority is refused",
      createAuthority("Nobody knows me").issue({ hosts }),
      noResponse("tls", incomplete),
    ],
    [
      "has a certificate for another host is refused",
      authority.issue({ hosts: ["receiver.example", "127.0.0.2"] }),
      noResponse("tls", "certificate is for another host name"),
    ],
    ["leaves out the intermediate certificate is refused", chained, noResponse("tls", incomplete)],
    [
      "speaks 1.0 at most is refused",
      { ...certificate, minVersion: "TLSv1", maxVersion: "TLSv1" },
      noResponse("tls", "TLS handshake failed"),
    ],
    [
      "speaks 1.1 at most is refused",
      { ...certificate, minVersion: "TLSv1.1", maxVersion: "TLSv1.1" },
      noResponse("tls", "TLS handshake failed"),
    ],
  ])("%s", async (_title, options, expected) => {
    const receiver = await startHostileReceiver({ tls: options });
    const reply = await transport.send({ url: `https://127.0.0.1:${receiver.port}/hook`, headers: {}, body });
    expectReply(reply, expected);
    expectElapsed(reply.durationMs, false);
    expect(receiver.requests()).toBe(expected.kind === "responded" ? 1 : 0);
    receiver.close();
  });

  const hangUp = "connection closed during the TLS handshake";
  const handshakeFailure = Buffer.from("15030300020228", "hex");

  test.each<[string, (peer: net.Socket) => void, Expected]>([
    ["never begins uses up the time", () => {}, noResponse("timeout")],
    ["never goes on uses up the time", (peer) => peer.once("data", () => peer.write("\x16")), noResponse("timeout")],
    ["is none is refused", (peer) => peer.write(head(400)), noResponse("tls", "TLS handshake failed")],
    ["is noise is refused", (peer) => peer.write(Buffer.alloc(70_000, 1)), noResponse("tls", "TLS handshake failed")],
    [
      "ends with an alert is refused",
      (peer) => peer.write(handshakeFailure),
      noResponse("tls", "TLS handshake failed"),
    ],
    ["hangs up at once is refused", (peer) => peer.end(), noResponse("tls", hangUp)],
    ["hangs up within is refused", (peer) => peer.once("data", () => peer.end()), noResponse("tls", hangUp)],
    ["resets within is refused", (peer) => peer.once("data", () => peer.resetAndDestroy()), noResponse("tls", hangUp)],
  ])("handshake %s", async (_title, onConnection, expected) => {
    const receiver = await startHostileReceiver({ onConnection });
    const reply = await transport.send({ url: `https://127.0.0.1:${receiver.port}/hook`, headers: {}, body });
    expectReply(reply, expected);
    expectElapsed(reply.durationMs, expected.kind === "no-response" && expected.cause === "timeout");
    receiver.close();
  });
});
