import { expect, test } from "bun:test";
import { openReception } from "../src/reception.ts";
import { createFakeClock } from "./support/fake-clock.ts";
import { connectRaw, headOf, statusOf } from "./support/raw-peer.ts";
import { freePort } from "./support/receiver-programs.ts";
import { startTestApp } from "./support/test-app.ts";

const onLinux = test.skipIf(process.platform !== "linux");

onLinux("a server may be succeeded soon after it has taken over, although a stream from then goes on", async () => {
  const clock = createFakeClock();
  const port = freePort();
  const options = { host: "127.0.0.1", port, tls: null, idleTimeout: 10, maxRequestBodySize: 1024 };
  const predecessor = openReception(options);
  const reception = openReception(options);
  expect(reception.steer()).toBe(true);
  const peer = await connectRaw(`http://127.0.0.1:${port}`);
  await predecessor.close();
  const server = await startTestApp({ clock, reception, env: { POSTRIDER_PORT: String(port) } });
  const account = await server.account();
  peer.write(`${headOf("GET", "/v1/stream", { Authorization: `Bearer ${account.jwt}` })}\r\n`);
  await peer.until((received) => received.includes(": open"));

  expect(server.app.keepPort()).toBeNull();
  clock.advance(5000);
  const letGo = server.app.keepPort();
  expect(letGo).not.toBeNull();
  letGo?.();
  expect((await account.put("/v1/tenants/webhooks", [])).status).toBe(200);
  await peer.until((received) => received.includes("account.changed"));
  await server.stop();
  await peer.closed;
});

onLinux("what came to a predecessor's listener is asked for its head alone, and leaves no stream open", async () => {
  const port = freePort();
  const reception = openReception({ host: "127.0.0.1", port, tls: null, idleTimeout: 10, maxRequestBodySize: 1024 });
  const server = await startTestApp({ reception, env: { POSTRIDER_PORT: "0" } });
  const account = await server.account();
  for (const path of ["/v1/stream", "/v1/events"]) {
    const peer = await connectRaw(`http://127.0.0.1:${port}`);
    peer.write(`${headOf("HEAD", path, { Authorization: `Bearer ${account.jwt}` })}\r\n`);
    expect(statusOf(await peer.closed)).toBe(200);
  }
  const { text } = await server.request("GET", "/metrics", { token: server.operatorToken });
  expect(text).toContain("\npostrider_open_streams 0\n");
  await server.stop();
});
