import type net from "node:net";
import tls from "node:tls";
import { type Authority, createAuthority, createSelfSigned } from "./certificates.ts";
import { type Expected, noResponse, responded } from "./expected-outcome.ts";
import { head } from "./hostile-receiver.ts";

const hosts = ["127.0.0.1"];

/** Certificates and versions: what a server offers in the handshake, and the outcome that an attempt must have. */
export type TlsRow = [title: string, options: tls.TlsOptions, expected: Expected];

/** @param authority trusted by the client */
export function tlsBehaviours(authority: Authority): TlsRow[] {
  const certificate = authority.issue({ hosts });
  const past = (hours: number) => new Date(Date.now() - hours * 3_600_000);
  const middle = authority.issueAuthority("Intermediate authority");
  const chained = middle.issue({ hosts });
  const incomplete = "certificate chain is incomplete or its authority is unknown";

  return [
    ["is as it should be answers", certificate, responded(200)],
    ["has the whole chain answers", { ...chained, cert: chained.cert + middle.cert }, responded(200)],
    ["speaks 1.2 at most answers", { ...certificate, maxVersion: "TLSv1.2" }, responded(200)],
    [
      "has an expired certificate is refused",
      authority.issue({ hosts, notBefore: past(2), notAfter: past(1) }),
      noResponse("tls_failed", "certificate has expired"),
    ],
    [
      "has a certificate of the future is refused",
      authority.issue({ hosts, notBefore: past(-1), notAfter: past(-2) }),
      noResponse("tls_failed", "certificate is not valid yet"),
    ],
    [
      "has a self-signed certificate is refused",
      createSelfSigned({ hosts }),
      noResponse("tls_failed", "certificate is self-signed"),
    ],
    [
      "has a certificate of an unknown authority is refused",
      createAuthority("Nobody knows me").issue({ hosts }),
      noResponse("tls_failed", incomplete),
    ],
    [
      "has a certificate for another host is refused",
      authority.issue({ hosts: ["receiver.example", "127.0.0.2"] }),
      noResponse("tls_failed", "certificate is for another host name"),
    ],
    ["leaves out the intermediate certificate is refused", chained, noResponse("tls_failed", incomplete)],
    [
      "speaks 1.0 at most is refused",
      { ...certificate, minVersion: "TLSv1", maxVersion: "TLSv1" },
      noResponse("tls_failed", "TLS handshake failed"),
    ],
    [
      "speaks 1.1 at most is refused",
      { ...certificate, minVersion: "TLSv1.1", maxVersion: "TLSv1.1" },
      noResponse("tls_failed", "TLS handshake failed"),
    ],
    [
      "needs a server name, which an address has not, is refused",
      { SNICallback: (_name, found) => found(null, tls.createSecureContext(certificate)) },
      noResponse("tls_failed", "TLS handshake failed"),
    ],
  ];
}

/** What happens instead of a handshake. */
export type HandshakeRow = [title: string, onConnection: (peer: net.Socket) => void, expected: Expected];

const hangUp = "connection closed during the TLS handshake";
const handshakeFailure = Buffer.from("15030300020228", "hex");

export const handshakeBehaviours: HandshakeRow[] = [
  ["never begins uses up the time", () => {}, noResponse("timeout")],
  ["never goes on uses up the time", (peer) => peer.once("data", () => peer.write("\x16")), noResponse("timeout")],
  ["is none is refused", (peer) => peer.write(head(400)), noResponse("tls_failed", "TLS handshake failed")],
  [
    "is noise is refused",
    (peer) => peer.write(Buffer.alloc(70_000, 1)),
    noResponse("tls_failed", "TLS handshake failed"),
  ],
  [
    "ends with an alert is refused",
    (peer) => peer.write(handshakeFailure),
    noResponse("tls_failed", "TLS handshake failed"),
  ],
  ["hangs up at once is refused", (peer) => peer.end(), noResponse("tls_failed", hangUp)],
  ["hangs up within is refused", (peer) => peer.once("data", () => peer.end()), noResponse("tls_failed", hangUp)],
  [
    "resets within is refused",
    (peer) => peer.once("data", () => peer.resetAndDestroy()),
    noResponse("tls_failed", hangUp),
  ],
];
