import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../../support/api-server.ts";
import { connectRaw } from "../../support/raw-peer.ts";
import { startReceiver } from "../../support/receiver.ts";

const limit = 256;

type Flooded = "the server" | "the probes";

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function startServer() {
  const folder = mkdtempSync(join(tmpdir(), "postrider-descriptors-"));
  cleanUps.push(() => rmSync(folder, { recursive: true, force: true }));
  const program = [process.execPath, join(import.meta.dir, "../../../src/main.ts"), "serve"];
  const server = Bun.spawn(["prlimit", `--nofile=${limit}:${limit}`, ...program], {
    env: {
      POSTRIDER_PORT: "0",
      POSTRIDER_HEALTH_PORT: "0",
      POSTRIDER_DATA_DIR: folder,
      POSTRIDER_LOG_FORMAT: "json",
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  cleanUps.push(async () => {
    server.kill();
    await server.exited;
  });
  let log = "";
  void (async () => {
    for await (const text of server.stdout.pipeThrough(new TextDecoderStream())) log += text;
  })();
  await until(
    () => log,
    (text) => text.includes("server.started"),
  );
  const port = Number(/"url":"http:\/\/localhost:(\d+)"/.exec(log)?.[1]);
  const probesPort = Number(/"server\.probes".*"port":(\d+)/.exec(log)?.[1]);
  function halfRequest(which: Flooded): Socket {
    const socket = connect(which === "the server" ? port : probesPort, "127.0.0.1");
    socket.on("connect", () => socket.write("GET /healthz HT")).on("error", () => {});
    cleanUps.push(() => socket.destroy());
    return socket;
  }
  return {
    url: `http://127.0.0.1:${port}`,
    log: () => log,
    exited: server.exited,
    open: () => readdirSync(`/proc/${server.pid}/fd`).length,
    probesUrl: `http://127.0.0.1:${probesPort}`,
    /** More connections than it has descriptors, each with half of a request. */
    flood(which: Flooded) {
      for (let i = 0; i < limit + 150; i++) halfRequest(which);
    },
    /** The same without end: each that is closed is opened again. @returns stops it, once this many were closed */
    floodAgain(which: Flooded, closes: number): Promise<void> {
      let closed = 0;
      return new Promise((resolve) => {
        const open = () =>
          halfRequest(which).on("close", () => {
            closed += 1;
            if (closed < closes) open();
            else resolve();
          });
        for (let i = 0; i < limit + 500; i++) open();
      });
    },
  };
}

/** Only Linux lets a program be started with a limit by another, and tells which connections do nothing. */
const hasLimits = process.platform === "linux" && Bun.which("prlimit") !== null;

describe.skipIf(!hasLimits).each(["the server", "the probes"] as const)(
  "more connections to %s than descriptors",
  (which) => {
    test("those that do nothing go, the server stays reachable and says so", async () => {
      const { url, probesUrl, log, flood } = await startServer();
      flood(which);
      await until(log, (text) => text.includes("descriptors.short"));
      const [line = ""] = log()
        .split("\n")
        .filter((text) => text.includes("descriptors.short"));
      expect(JSON.parse(line)).toMatchObject({ level: "warn", limit, open: expect.any(Number) });

      // Those that were waiting take the places of those that go, so it takes some looks until there is room.
      const metrics = await until(
        () => fetch(`${url}/metrics`, { keepalive: false }),
        ({ status }) => status === 200,
      );
      const [, open = ""] = /^process_open_fds (\d+)$/m.exec(await metrics.text()) ?? [];
      expect(Number(open)).toBeLessThan(limit);
      expect(log().split("descriptors.short")).toHaveLength(2);
      await until(
        () => fetch(`${probesUrl}/healthz`, { keepalive: false }),
        ({ status }) => status === 200,
      );
    }, 120_000);

    test("a first delivery, for which a thread has to be started, does not end the server", async () => {
      const { url, log, exited, open, flood } = await startServer();
      const receiver = startReceiver();
      cleanUps.push(() => receiver.stop());
      const send = async <T>(method: string, path: string, bearer: string, body?: unknown) => {
        const headers = { Authorization: `Bearer ${bearer}`, "Content-Type": "application/json" };
        const answer = await fetch(url + path, {
          method,
          headers,
          ...(body !== undefined && { body: JSON.stringify(body) }),
        });
        return (await answer.json()) as T;
      };
      const made = await send<{ tenant_id: string; password: string }>("POST", "/v1/tenants", "", {});
      const login = { loginId: made.tenant_id, password: made.password };
      const { token } = await send<{ token: string }>("POST", "/v1/tenants/auth/login", "", login);
      await send("PUT", "/v1/tenants/webhooks", token, [{ webhook_url: receiver.url, name: "" }]);
      const [key] = await send<{ key: string }[]>("GET", "/v1/tenants/api-keys", token);
      const peer = await connectRaw(url);
      cleanUps.push(() => peer.socket.destroy());
      peer.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
      await peer.until((said) => said.includes("200 OK"));

      flood(which);
      await until(
        () => open() >= limit - 2 || log().includes("descriptors.short"),
        (isFull) => isFull,
      );
      const body = '{"payload":{}}';
      const head = `POST /v1/ingest HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key?.key}\r\nContent-Type: application/json`;
      peer.write(`${head}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      await peer.until((said) => said.includes("202 Accepted"));
      const first = receiver.waitFor(1).then(() => "delivered");
      expect(await Promise.race([first, exited])).toBe("delivered");
    }, 120_000);

    test("those that come again and again do not end it", async () => {
      const { url, probesUrl, log, exited, floodAgain } = await startServer();
      const flooded = floodAgain(which, 2000).then(() => "still there");
      expect(await Promise.race([flooded, exited])).toBe("still there");
      expect(log()).toContain("descriptors.short");
      for (const place of [url, probesUrl]) {
        const status = async () => (await fetch(`${place}/healthz`, { keepalive: false }).catch(() => null))?.status;
        await until(status, (answered) => answered === 200);
      }
    }, 120_000);
  },
);
