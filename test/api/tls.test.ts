import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ConnectionOptions, connect } from "node:tls";
import { tlsSuites, transportHeadersOf } from "../../src/http/transport-security.ts";
import { createSelfSigned } from "../support/certificates.ts";
import { connectRaw } from "../support/raw-peer.ts";
import { startTestApp, type TestApp } from "../support/test-app.ts";

/** Hazards, section 5, "TLS": what ends in this program, as real clients find it. */

const certificate = createSelfSigned({ hosts: ["relay.example.com", "127.0.0.1"] });
let folder: string;
let server: TestApp;
/** Bun's own choice of suites, so that a refusal proves ours. */
let plain: Bun.Server<undefined>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "postrider-tls-"));
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  writeFileSync(cert, certificate.cert);
  writeFileSync(key, certificate.key);
  server = await startTestApp({
    env: {
      POSTRIDER_TLS_CERT: cert,
      POSTRIDER_TLS_KEY: key,
      POSTRIDER_PUBLIC_URL: "https://relay.example.com",
    },
  });
  plain = Bun.serve({ port: 0, hostname: "127.0.0.1", tls: certificate, fetch: () => new Response("") });
});
afterAll(async () => {
  await server.stop();
  await plain.stop(true);
  rmSync(folder, { recursive: true, force: true });
});

/** Version and suite that a client gets, or null when they find none. */
function handshake(port: number, options: ConnectionOptions): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...options }, () => {
      resolve(`${socket.getProtocol()} ${socket.getCipher().name}`);
      socket.destroy();
    });
    socket.on("error", () => resolve(null));
    socket.on("close", () => resolve(null));
  });
}

const portOf = ({ url }: { url: string | URL }) => Number(new URL(url).port);
const only12 = (ciphers: string): ConnectionOptions => ({ minVersion: "TLSv1.2", maxVersion: "TLSv1.2", ciphers });

/** The ClientHello of a client that knows nothing newer than 3.`minor` (RFC 4346, section 7.4.1.2), with suites of its time. */
function helloOf(minor: number): Uint8Array {
  const suites = [0xc009, 0xc00a, 0xc013, 0xc014, 0x002f, 0x0035].flatMap((suite) => [suite >> 8, suite & 255]);
  const body = [3, minor, ...Array(32).fill(7), 0, 0, suites.length, ...suites, 1, 0];
  const handshake = [1, 0, 0, body.length, ...body];
  return Uint8Array.from([22, 3, 1, 0, handshake.length, ...handshake]);
}

describe("the listener's TLS", () => {
  test("is 1.3 where a client can", async () => {
    expect(await handshake(portOf(server), {})).toMatch(/^TLSv1\.3 TLS_/);
  });

  test.each(tlsSuites.split(":").filter((suite) => suite.includes("ECDSA")))("1.2 with %s", async (suite) => {
    expect(await handshake(portOf(server), only12(suite))).toBe(`TLSv1.2 ${suite}`);
  });

  test.each(["ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA"])("1.2 not with %s, which Bun takes", async (suite) => {
    expect(await handshake(portOf(plain), only12(suite))).toBe(`TLSv1.2 ${suite}`);
    expect(await handshake(portOf(server), only12(suite))).toBeNull();
  });

  // Clients refuse to speak them themselves, so this one is written by hand.
  test.each([
    ["1.0", 1],
    ["1.1", 2],
  ] as const)("is not %s", async (_, minor) => {
    const peer = await connectRaw(server.url);
    peer.write(helloOf(minor));
    const alert = Buffer.from(await peer.closed, "latin1");
    // Fatal, protocol_version (RFC 5246, section 7.2).
    expect([alert[0], ...alert.subarray(5)]).toEqual([21, 2, 70]);
  });

  test("every suite of 1.2 has forward secrecy and authenticated encryption", () => {
    for (const suite of tlsSuites.split(":")) expect(suite).toMatch(/^ECDHE-(RSA|ECDSA)-(AES\d+-GCM|CHACHA20)-/);
  });
});

describe("Strict-Transport-Security", () => {
  const get = (path: string, init: RequestInit = {}) =>
    fetch(`https://127.0.0.1:${portOf(server)}${path}`, { ...init, tls: { rejectUnauthorized: false } });

  test.each([
    [200, "/healthz", {}],
    [200, "/docs", {}],
    [200, "/openapi.json", {}],
    [404, "/nothing", {}],
    [405, "/healthz", { method: "PUT" }],
    [401, "/v1/tenants/me", {}],
    [400, "/healthz?a=\\", {}],
    [403, "/v1/tenants", { method: "POST", headers: { Origin: "https://evil.example" } }],
  ] as const)("is on a %i of %s", async (status, path, init) => {
    const answer = await get(path, init);
    expect([answer.status, answer.headers.get("strict-transport-security")]).toEqual([status, "max-age=31536000"]);
  });

  const tls = { cert: "", key: "" };
  test.each([
    ["behind a proxy, which says it itself", null, "https://relay.example.com"],
    ["without a public URL", tls, null],
    ["on the laptop, where it would hold for every other port", tls, "https://localhost:8080"],
    ["for an address", tls, "https://203.0.113.7"],
    ["for an address of version 6", tls, "https://[2001:db8::1]"],
    ["when the public URL is plain http", tls, "http://relay.example.com"],
  ])("is not there %s", (_, tls, publicUrl) => {
    expect(transportHeadersOf({ tls, publicUrl })).toEqual({});
  });
});
