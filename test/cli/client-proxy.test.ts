import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type App, createApp } from "../../src/app.ts";
import { type Answer, call } from "../../src/cli/http-client.ts";
import { loadConfig } from "../../src/config.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createAuthority } from "../support/certificates.ts";
import { type ConnectProxy, startConnectProxy } from "../support/connect-proxy.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { enterFolder } from "../support/test-app.ts";

/**
 * A server on the internet, of a company with an authority of its own, behind the proxy of the office. In processes of
 * their own, because proxy and authority are read from the environment of a process.
 */
const host = "relay.example.com";
const folder = mkdtempSync(join(tmpdir(), "postrider-proxy-"));
let app: App;
let port: number;
let proxy: ConnectProxy;
let receiver: Receiver;
let account: { id: string; password: string; apiKey: string };

beforeAll(async () => {
  const authority = createAuthority("Company");
  const { cert, key } = authority.issue({ hosts: [host] });
  const file = (name: string, content: string) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  file("ca.pem", authority.cert);
  const env = {
    POSTRIDER_PORT: "0",
    POSTRIDER_PUBLIC_URL: `https://${host}`,
    POSTRIDER_DATA_DIR: join(folder, "data"),
    POSTRIDER_MIN_FREE_DISK: "0",
    POSTRIDER_TLS_CERT: file("cert.pem", cert),
    POSTRIDER_TLS_KEY: file("key.pem", key),
  };
  app = await createApp(loadConfig(env, new Map()), {
    runOwn: async () => ({ code: 1, out: "", err: "" }),
    clock: systemClock,
    log: silentLog,
    ...enterFolder(env.POSTRIDER_DATA_DIR),
  });
  ({ port } = await app.start());
  proxy = await startConnectProxy(port);
  receiver = startReceiver();
  account = await createAccount(`https://127.0.0.1:${port}`);
});

afterAll(async () => {
  await receiver.stop();
  await proxy.stop();
  await app.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function createAccount(url: string) {
  const { json: created } = await call(`${url}/v1/tenants`, { method: "POST" });
  const { tenant_id: id = "", password = "" } = created as Record<string, string>;
  const login = await call(`${url}/v1/tenants/auth/login`, { method: "POST", body: { loginId: id, password } });
  const { token } = login.json as { token: string };
  const keys: Answer = await call(`${url}/v1/tenants/api-keys`, { headers: { Authorization: `Bearer ${token}` } });
  return { id, password, apiKey: (keys.json as { key: string }[])[0]?.key ?? "" };
}

const office = () => ({
  HTTPS_PROXY: proxy.url,
  HTTP_PROXY: proxy.url,
  NODE_EXTRA_CA_CERTS: join(folder, "ca.pem"),
  POSTRIDER_URL: `https://${host}`,
  POSTRIDER_LOGIN: account.id,
  POSTRIDER_PASSWORD: account.password,
});

function start(words: readonly string[], env: Record<string, string>) {
  const main = join(import.meta.dir, "../../src/main.ts");
  return Bun.spawn([process.execPath, main, ...words], { env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
}

async function run(words: readonly string[], env: Record<string, string>) {
  const child = start(words, env);
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { code: await child.exited, out, err };
}

async function whenSaid(stream: ReadableStream<Uint8Array>, text: string): Promise<void> {
  let said = "";
  for await (const chunk of stream) {
    said += new TextDecoder().decode(chunk);
    if (said.includes(text)) return;
  }
  throw new Error(`It ended without "${text}": ${said}`);
}

describe("through a proxy", () => {
  test("send and listen reach the server, and the local address is reached without it", async () => {
    const listening = start(["listen", "--forward-to", receiver.url], office());
    await whenSaid(listening.stderr, "Forwarding");
    const sent = await run(["send", '{"hello": "world"}'], office());
    expect(sent).toEqual({ code: 0, out: expect.stringMatching(/^evt_\w+\n$/), err: "" });
    const { headers } = await receiver.waitFor(() => true);
    expect(headers.get("service-event-id")).toBe(sent.out.trim());
    await whenSaid(listening.stdout, "204");
    listening.kill("SIGINT");
    expect(await listening.exited).toBe(0);
    expect(new Set(proxy.requests)).toEqual(new Set([`CONNECT ${host}:443 HTTP/1.1`]));
  });

  test("a certificate that nobody vouches for ends them with 1 and a remedy", async () => {
    const { NODE_EXTRA_CA_CERTS: _, ...env } = office();
    const words = ["send", "{}"];
    for (const unsafe of [{}, { NODE_TLS_REJECT_UNAUTHORIZED: "0" }]) {
      const { code, out, err } = await run(words, { ...env, ...unsafe });
      expect({ code, out }).toEqual({ code: 1, out: "" });
      expect(err).toContain(
        `postrider: https://${host} cannot be trusted: its certificate chain is incomplete or its authority is unknown. ` +
          "Try: NODE_EXTRA_CA_CERTS=",
      );
    }
  });

  test("a server on this machine is reached without it", async () => {
    const other = startReceiver({
      answer: () => Response.json({ status: "accepted", eventId: "evt_1" }, { status: 202 }),
    });
    const env = { ...office(), POSTRIDER_URL: other.url, POSTRIDER_API_KEY: account.apiKey };
    const before = proxy.requests.length;
    expect(await run(["send", "{}"], env)).toEqual({ code: 0, out: "evt_1\n", err: "" });
    expect(proxy.requests).toHaveLength(before);
    await other.stop();
  });

  test("a proxy that cannot be reached is named, and what to check", async () => {
    const env = { ...office(), HTTPS_PROXY: "http://127.0.0.1:1" };
    const { code, err } = await run(["send", "{}", "--retry-for", "1ms"], env);
    expect(code).toBe(1);
    expect(err).toStartWith(
      `postrider: https://${host} cannot be reached through HTTPS_PROXY (connection refused); gave up after 1 ms. ` +
        "Try: check HTTPS_PROXY, and --server with the address of your server.",
    );
  });

  test("a proxy that refuses is named in the message", async () => {
    const closed = await startConnectProxy(null);
    const env = { ...office(), HTTPS_PROXY: closed.url };
    const { code, err } = await run(["send", "{}", "--retry-for", "1ms"], env);
    await closed.stop();
    expect(code).toBe(1);
    expect(err).toStartWith(
      `postrider: https://${host} cannot be reached (proxy refused to open a tunnel: 407 Proxy Authentication Required)`,
    );
  });
});
