import { expect, test } from "bun:test";
import { cannotListen, listenFaultOf } from "../../src/http/listen-fault.ts";
import { startTestApp } from "../support/test-app.ts";

test.each([
  ["EADDRINUSE", "the port is in use", "stop whatever uses that port, or set POSTRIDER_PORT to another one"],
  [
    "EACCES",
    "the server's user may not use this port",
    "set POSTRIDER_PORT to 1024 or above, or give the server the capability CAP_NET_BIND_SERVICE (Linux)",
  ],
  [
    "EADDRNOTAVAIL",
    "this machine has no such address",
    "set POSTRIDER_HOST to one of its addresses, or to 0.0.0.0 for all of them",
  ],
  ["", "no such host", "check POSTRIDER_HOST and POSTRIDER_PORT"],
])("who cannot listen for %p is told the cause and its remedy", (code, cause, remedy) => {
  const error = Object.assign(new Error("no such host"), code === "" ? {} : { code });
  const place = { host: "127.0.0.1", port: 80, setting: "POSTRIDER_PORT" };
  expect(cannotListen("The server", place, listenFaultOf(error)).message).toBe(
    `The server cannot listen on 127.0.0.1:80 (${cause}). Try: ${remedy}.`,
  );
});

test.each([
  // Reserved for documentation: no machine has them.
  ["203.0.113.9", "203.0.113.9:43020 (this machine has no such address)"],
  ["2001:db8::1", "[2001:db8::1]:43020 (this machine has no such address)"],
])("a server on %s, which is no address of the machine, says so", async (host, words) => {
  const env = { POSTRIDER_HOST: host, POSTRIDER_PORT: "43020", POSTRIDER_PUBLIC_URL: "https://relay.example.com" };
  expect(await startTestApp({ env }).then(() => "started", String)).toContain(`The server cannot listen on ${words}`);
});

test("a server on a port that is in use says so", async () => {
  const taken = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const started = startTestApp({ env: { POSTRIDER_PORT: String(taken.port) } });
  expect(await started.then(() => "started", String)).toContain(`127.0.0.1:${taken.port} (the port is in use)`);
  taken.stop(true);
});
