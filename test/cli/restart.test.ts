import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { Agent, type RequestOptions, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exitCode } from "../../src/cli/io.ts";
import { runCommand } from "../../src/cli/run.ts";
import { successorVariable } from "../../src/cli/successor-variable.ts";
import { readServerFile } from "../../src/server-file.ts";
import { startReceiver } from "../support/receiver.ts";
import { createScriptedIo } from "../support/scripted-io.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";

/** `postrider restart`, with real processes (`src/handover.ts`). Ports are shared on Linux only. */

let folder: string;
let server: ServerProcess;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postrider-restart-"));
});
afterEach(async () => {
  const pid = readServerFile(folder)?.pid;
  if (pid !== undefined && commandOf(pid) !== "") process.kill(pid, "SIGKILL");
  await server.exited;
  rmSync(folder, { recursive: true, force: true });
});

async function start(port: number) {
  server = startServerProcess(folder, { POSTRIDER_PORT: String(port), POSTRIDER_MIN_FREE_DISK: "0" });
  const { url } = await server.logged("server.started");
  const call = async (method: string, path: string, body?: unknown, token?: string) => {
    const headers = { "Content-Type": "application/json", ...(token && { Authorization: `Bearer ${token}` }) };
    const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
    // biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
    return (await (await fetch(`${url}${path}`, init)).json()) as any;
  };
  return call;
}

async function openAccount(call: Awaited<ReturnType<typeof start>>) {
  const account = await call("POST", "/v1/tenants", {});
  const login = { loginId: account.tenant_id, password: account.password };
  const { token } = await call("POST", "/v1/tenants/auth/login", login);
  const [{ key }] = await call("GET", "/v1/tenants/api-keys", undefined, token);
  return { token: token as string, key: key as string };
}

function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  listener.stop(true);
  return listener.port;
}

async function run(...argv: string[]) {
  const { io, out, err } = createScriptedIo({ env: { POSTRIDER_DATA_DIR: folder } });
  const code = await runCommand(argv, io);
  return { code, out, err };
}
const restart = () => run("restart");

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
    const call = await start(port);
    const { token, key } = await openAccount(call);
    const listed = () => call("GET", "/v1/events?page=0&size=1", undefined, token);
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
    const { totalEvents } = await listed();
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
    expect(refused.err.join()).toMatch(
      /so this one keeps running: The database|is most likely still finishing\. Try: again in 10 s/,
    );
    expect(readServerFile(folder)?.pid).toBe(second);
    expect(await listed()).toMatchObject({ totalEvents });

    const audit = await run("audit", "--action", "server.restarted");
    expect(audit.out.join("\n")).toMatch(/server\.restarted +command of .+ version: \S+\n1 of 1\.$/);
  }, 60_000);

  test("outlives its successor: before it is ready, then, and when it serves alone", async () => {
    const port = freePort();
    const call = await start(port);
    const { token, key } = await openAccount(call);
    const held = Promise.withResolvers<Response>();
    const receiver = startReceiver({ answer: () => held.promise });
    const states = async () => {
      const { events } = await call("GET", "/v1/events?page=0&size=9", undefined, token);
      return events.map(({ state, attempts }: { state: string; attempts: number }) => `${state} ${attempts}`);
    };
    await call("PUT", "/v1/tenants/webhooks", [{ webhook_url: receiver.url }], token);
    await call("POST", "/v1/ingest", { payload: {} }, key);
    await receiver.waitFor(1);
    const first = readServerFile(folder)?.pid ?? 0;

    const unready = restart();
    process.kill(await childOf(first), "SIGKILL");
    const { code: refused, err } = await unready;
    expect([refused, err.join()]).toEqual([
      exitCode.failed,
      expect.stringMatching(/SIGKILL, so this one keeps running/),
    ]);
    expect(await states()).toEqual(["PENDING 0"]);

    const restarted = restart();
    const { byProcess: ready } = await server.logged("server.succeeded");
    process.kill(Number(ready), "SIGKILL");
    held.resolve(new Response(null, { status: 204 }));
    expect(await restarted).toMatchObject({ code: exitCode.ok });
    expect(await server.logged("server.successor_died")).toMatchObject({ process: ready });
    expect(await server.exited).toBe(0);
    const second = readServerFile(folder)?.pid ?? 0;
    expect([first, ready]).not.toContain(second);
    expect(await states()).toEqual(["DELIVERED 1"]);
    await call("POST", "/v1/ingest", { payload: {} }, key);

    // As a supervisor does.
    process.kill(second, "SIGKILL");
    await start(port);
    expect((await states()).length).toBe(2);
    await receiver.stop();
  }, 60_000);
});

describe.skipIf(process.platform !== "linux")("the stop of a server that restarts", () => {
  test("ends the next process as well, before it is ready", async () => {
    await start(freePort());
    const pid = readServerFile(folder)?.pid ?? 0;
    const restarted = restart();
    const next = await childOf(pid);
    server.kill("SIGTERM");
    expect(await restarted).toMatchObject({
      code: exitCode.failed,
      err: [expect.stringContaining("The server was not restarted: it is stopping.")],
    });
    expect(await server.exited).toBe(0);
    await gone(next);
  }, 60_000);

  test.each([
    ["and exits with 0 once attempts in flight have ended", ["SIGTERM"], 0],
    ["and a second signal does not wait for them", ["SIGTERM", "SIGTERM"], 143],
  ] as const)(
    "ends both processes during the handover, %s",
    async (_, signals, code) => {
      const port = freePort();
      const call = await start(port);
      const { token, key } = await openAccount(call);
      const held = Promise.withResolvers<Response>();
      const receiver = startReceiver({ answer: () => held.promise });
      await call("PUT", "/v1/tenants/webhooks", [{ webhook_url: receiver.url }], token);
      await call("POST", "/v1/ingest", { payload: {} }, key);
      await receiver.waitFor(1);
      server.kill("SIGUSR2");
      const { byProcess: next } = await server.logged("server.succeeded");
      for (const signal of signals) {
        server.kill(signal);
        await server.logged("server.stopping");
      }
      if (signals.length === 1) held.resolve(new Response());
      expect(await server.exited).toBe(code);
      await gone(Number(next));
      held.resolve(new Response());
      await receiver.stop();
    },
    60_000,
  );

  test.each([
    ["that has the port", ["leaving"], "steered"],
    ["that serves already", ["leaving", "released"], "serves"],
  ])(
    "is passed on to the next process %s",
    async (_, said, until) => {
      const port = freePort();
      await start(port);
      server.kill("SIGTERM");
      await server.exited;
      const heard: string[] = [];
      let look = () => {};
      const next = Bun.spawn([process.execPath, join(import.meta.dir, "../../src/main.ts"), "serve"], {
        env: {
          ...process.env,
          [successorVariable]: String(process.pid),
          ...{ POSTRIDER_DATA_DIR: folder, POSTRIDER_PORT: String(port), POSTRIDER_MIN_FREE_DISK: "0" },
        },
        stdout: "ignore",
        ipc({ kind }) {
          heard.push(kind);
          look();
        },
      });
      const hears = async (kind: string) => {
        while (!heard.includes(kind)) await new Promise<void>((resolve) => (look = resolve));
      };
      await hears("ready");
      for (const kind of said) next.send({ kind });
      await hears("steered");
      while (until === "serves" && readServerFile(folder) === null) await Bun.sleep(5);
      next.send({ kind: "stop" });
      if (until !== "serves") next.send({ kind: "released" });
      expect(await next.exited).toBe(0);
      expect(readServerFile(folder)).toBeNull();
    },
    60_000,
  );
});

/** Resolves when the process has ended, whether or not anybody has asked for its exit code. */
async function gone(pid: number): Promise<void> {
  while (commandOf(pid) !== "") await Bun.sleep(5);
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

/** The process that it has started, as soon as there is one. */
async function childOf(pid: number): Promise<number> {
  for (;;) {
    for (const name of readdirSync("/proc")) {
      if (/^\d+$/.test(name) && parentOf(name) === pid) return Number(name);
    }
    await Bun.sleep(2);
  }
}

function parentOf(pid: string): number | null {
  try {
    // After the name, which may hold anything: the state, then the parent.
    const [, stat = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(/\) (?!.*\) )/s);
    return Number(stat.split(" ")[1]);
  } catch {
    return null;
  }
}
