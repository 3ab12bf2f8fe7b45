import { Database } from "bun:sqlite";
import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, type RequestOptions, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exitCode } from "../../src/cli/io.ts";
import { runCommand } from "../../src/cli/run.ts";
import { readServerFile } from "../../src/data-dir.ts";
import { createScriptedIo } from "../support/scripted-io.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";

/** `postrider restart`, with real processes (`src/handover.ts`). Ports are shared on Linux only. */

const folder = mkdtempSync(join(tmpdir(), "postrider-restart-"));
let server: ServerProcess;

afterEach(async () => {
  const pid = readServerFile(folder)?.pid;
  if (pid !== undefined) process.kill(pid, "SIGKILL");
  await server.exited;
  rmSync(folder, { recursive: true, force: true });
});

function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  listener.stop(true);
  return listener.port;
}

async function restart() {
  const { io, out, err } = createScriptedIo({ env: { POSTRIDER_DATA_DIR: folder } });
  const code = await runCommand(["restart"], io);
  return { code, out, err };
}

/** Clients that ask without a pause, half of them on kept connections. */
function createClients(port: number, options: RequestOptions, body: string) {
  const kept = new Agent({ keepAlive: true });
  const answers: number[] = [];
  const faults: string[] = [];
  let heard = () => {};
  let over = false;
  const ask = (agent: Agent | false) =>
    new Promise<void>((resolve) => {
      const asked = request({ host: "localhost", port, method: "POST", agent, ...options }, (answer) => {
        answers.push(answer.statusCode ?? 0);
        heard();
        answer.resume().on("end", resolve);
      });
      asked.on("error", ({ message }) => resolve(void faults.push(message)));
      asked.end(body);
    });
  const clients = [...Array(8)].map(async (_, i) => {
    while (!over) await ask(i % 2 === 0 ? kept : false);
  });
  return {
    faults,
    answers,
    async untilMore(count: number) {
      const wanted = answers.length + count;
      while (answers.length < wanted) await new Promise<void>((resolve) => (heard = resolve));
    },
    async end() {
      over = true;
      await Promise.all(clients);
      kept.destroy();
    },
  };
}

describe.skipIf(process.platform !== "linux")("a restart", () => {
  test("refuses no request and loses no event; what the next program cannot take over, this one keeps", async () => {
    const port = freePort();
    server = startServerProcess(folder, { POSTRIDER_PORT: String(port), POSTRIDER_MIN_FREE_DISK: "0" });
    const { url } = await server.logged("server.started");
    const post = async (path: string, body: unknown, token?: string) => {
      const headers = { "Content-Type": "application/json", ...(token && { Authorization: `Bearer ${token}` }) };
      const init = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
      // biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
      return (await (await fetch(`${url}${path}`, init)).json()) as any;
    };
    const account = await post("/v1/tenants", {});
    const { token } = await post("/v1/tenants/auth/login", { loginId: account.tenant_id, password: account.password });
    const [{ key }] = await post("/v1/tenants/api-keys", undefined, token);
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const clients = createClients(port, { path: "/v1/ingest", headers }, '{"payload":{}}');
    await clients.untilMore(50);
    const first = readServerFile(folder)?.pid;
    const { code, out, err } = await restart();
    expect({ code, err }).toEqual({ code: exitCode.ok, err: [] });
    await clients.untilMore(50);
    await clients.end();
    expect(clients.faults).toEqual([]);
    expect([...new Set(clients.answers)]).toEqual([202]);
    expect(await server.exited).toBe(0);
    const second = readServerFile(folder)?.pid;
    expect(second).not.toBe(first);
    expect(out.join()).toContain(`Process ${second} `);
    const { totalEvents } = await post("/v1/events?page=0&size=1", undefined, token);
    expect(totalEvents).toBe(clients.answers.length);

    // As a newer program would leave it.
    const database = new Database(join(folder, "postrider.db"));
    database.run("pragma busy_timeout = 5000");
    const { user_version: schema } = database.query("pragma user_version").get() as { user_version: number };
    database.run(`pragma user_version = ${schema + 1}`);
    const refused = await restart();
    database.run(`pragma user_version = ${schema}`);
    database.close();
    expect(refused.code).toBe(exitCode.failed);
    expect(refused.err.join()).toMatch(/this server goes on|cannot be succeeded/);
    expect(readServerFile(folder)?.pid).toBe(second);
    expect(await post("/v1/events?page=0&size=1", undefined, token)).toMatchObject({ totalEvents });
  }, 60_000);
});
