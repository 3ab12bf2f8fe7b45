import { expect, test } from "bun:test";
import { openReception } from "../src/reception.ts";
import { createFakeClock } from "./support/fake-clock.ts";
import { connectRaw, headOf } from "./support/raw-peer.ts";
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
