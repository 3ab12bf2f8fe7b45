import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSelfSigned } from "../support/certificates.ts";
import { connectRaw } from "../support/raw-peer.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";

const folders: string[] = [];
const servers: ServerProcess[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.kill("SIGKILL");
    await server.exited;
  }
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "postrider-signals-"));
  folders.push(folder);
  return folder;
}

function start(folder: string, env: Record<string, string> = {}): ServerProcess {
  const server = startServerProcess(folder, { POSTRIDER_MIN_FREE_DISK: "0", ...env });
  servers.push(server);
  return server;
}

const timeoutMs = 30_000;

describe("a signal to a server", () => {
  test.each(["SIGHUP", "SIGUSR1"] as const)(
    "%s has nothing to do and is ignored, with a line in the log",
    async (signal) => {
      const server = start(newFolder());
      const { url } = await server.logged("server.started");
      server.kill(signal);
      expect(await server.logged("signal.ignored")).toMatchObject({ signal });
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
      server.kill("SIGTERM");
      expect(await server.exited).toBe(0);
    },
    timeoutMs,
  );

  test(
    "SIGHUP takes the certificate of the files",
    async () => {
      const folder = newFolder();
      const files = { POSTRIDER_TLS_CERT: join(folder, "cert.pem"), POSTRIDER_TLS_KEY: join(folder, "key.pem") };
      const write = (host: string) => {
        const { cert, key } = createSelfSigned({ hosts: [host] });
        writeFileSync(files.POSTRIDER_TLS_CERT, cert);
        writeFileSync(files.POSTRIDER_TLS_KEY, key);
      };
      write("first.example");
      const server = start(join(folder, "data"), files);
      const { url } = await server.logged("server.started");
      write("second.example");
      server.kill("SIGHUP");
      expect(await server.logged("tls.reloaded")).toMatchObject({ subject: expect.stringContaining("second.example") });
      const health = await fetch(`${url}/healthz`, { tls: { rejectUnauthorized: false } });
      expect(health.status).toBe(200);
    },
    timeoutMs,
  );
});

describe("the end of a server", () => {
  test(
    "does not wait for a client that takes its time to send a request",
    async () => {
      const server = start(newFolder());
      const { url } = await server.logged("server.started");
      const client = await connectRaw(String(url));
      const head = "HTTP/1.1\r\nHost: localhost\r\n";
      // Both heads arrive together: once the first is answered, the second request is under way.
      client.write(`GET /healthz ${head}\r\nPOST /v1/tenants ${head}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n`);
      const trickle = setInterval(() => client.write("1\r\n \r\n"), 20);
      try {
        await client.until((said) => said.includes("200 OK"));
        server.kill("SIGTERM");
        expect(await server.exited).toBe(0);
      } finally {
        clearInterval(trickle);
        client.socket.destroy();
      }
    },
    timeoutMs,
  );
});

describe("a start while the predecessor ends", () => {
  test(
    "waits for it and takes its place; a signal ends the waiting",
    async () => {
      let release = () => {};
      let received = () => {};
      const held = new Promise<void>((resolve) => (release = resolve));
      const arrived = new Promise<void>((resolve) => (received = resolve));
      using receiver = Bun.serve({
        port: 0,
        async fetch() {
          received();
          await held;
          return new Response();
        },
      });
      const folder = newFolder();
      const first = start(folder);
      const { url } = await first.logged("server.started");
      const call = async (path: string, body: unknown, token?: string) => {
        const headers = { "Content-Type": "application/json", ...(token && { Authorization: `Bearer ${token}` }) };
        const method = body === undefined ? "GET" : "POST";
        const answer = await fetch(`${url}${path}`, {
          method,
          headers,
          ...(body !== undefined && { body: JSON.stringify(body) }),
        });
        // biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
        return { status: answer.status, body: (await answer.json()) as any };
      };
      const webhooks = [{ webhook_url: `http://127.0.0.1:${receiver.port}/` }];
      const { body: account } = await call("/v1/tenants", { webhooks });
      const credentials = { loginId: account.tenant_id, password: account.password };
      const { body: login } = await call("/v1/tenants/auth/login", credentials);
      const { body: keys } = await call("/v1/tenants/api-keys", undefined, login.token);
      await call("/v1/ingest", { payload: { n: 1 } }, keys[0].key);
      await arrived;

      first.kill("SIGTERM");
      await first.logged("server.stopping");
      const env = { POSTRIDER_PORT: new URL(String(url)).port };
      const second = start(folder, env);
      const third = start(folder, env);
      for (const waiting of [second, third]) await waiting.logged("server.waiting");
      third.kill("SIGTERM");
      expect(await third.exited).toBe(0);
      expect((await call("/v1/ingest", { payload: { n: 2 } }, keys[0].key)).status).toBe(202);
      release();
      expect(await first.exited).toBe(0);
      await second.logged("server.started");
      second.kill("SIGTERM");
      expect(await second.exited).toBe(0);
    },
    timeoutMs,
  );
});
