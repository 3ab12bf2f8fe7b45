import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateIdentity, identityToRecipient } from "age-encryption";
import { type Answer, call } from "../../src/cli/http-client.ts";
import { type Image, layOutImage } from "./image.ts";

/** The compiled executable, started from a folder that has nothing of the sources, as a user would have it. */

export interface SmokeResult {
  name: string;
  /** Null: it held. */
  fault: string | null;
  /** This machine lacks what it needs. */
  isSkipped: boolean;
  ms: number;
}

interface Ended {
  code: number;
  out: string;
  err: string;
}

/** A check that hangs is a fault, not a wait. */
const limitMs = 15_000;

export async function runSmoke(executable: string): Promise<SmokeResult[]> {
  const results: SmokeResult[] = [];
  for (const [name, check] of Object.entries(checks)) {
    const folder = mkdtempSync(join(tmpdir(), "postrider-smoke-"));
    const startedAt = performance.now();
    let fault: string | null = null;
    let isSkipped = false;
    try {
      await check(createBench(executable, folder));
    } catch (error) {
      isSkipped = error instanceof NotHere;
      if (!isSkipped) fault = error instanceof Error ? error.message : String(error);
    }
    results.push({ name, fault, isSkipped, ms: performance.now() - startedAt });
    rmSync(folder, { recursive: true, force: true });
  }
  return results;
}

/** A check needs what this machine does not have. */
class NotHere extends Error {}

type Bench = ReturnType<typeof createBench>;

function createBench(executable: string, folder: string) {
  /** Nothing of the environment, least of all settings; Windows needs its own. */
  const base = { PATH: "", SystemRoot: process.env.SystemRoot ?? "", TMPDIR: folder, TEMP: folder };
  const start = (words: readonly string[], env: Record<string, string> = {}) =>
    Bun.spawn([executable, ...words], {
      cwd: folder,
      env: { ...base, ...env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: limitMs,
      killSignal: "SIGKILL",
    });

  async function run(words: string, env?: Record<string, string>): Promise<Ended> {
    const child = start(words.split(" ").filter(Boolean), env);
    const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    return { code: await child.exited, out, err };
  }

  return { executable, folder, start, run };
}

const checks: Readonly<Record<string, (bench: Bench) => Promise<void>>> = {
  async version({ run }) {
    const { code, out } = await run("version");
    expectThat(code === 0 && /^postrider \d+\.\d+\.\d+ \(.*Bun /.test(out), "it prints its version", { code, out });
    const said = JSON.parse((await run("version --json")).out);
    const isOfAClone = /^[0-9a-f]{12}(-modified)?$/.test(said.commit) && !Number.isNaN(Date.parse(said.committedAt));
    expectThat(isOfAClone || said.commit === "unknown", "it knows the commit that it was built from", said);
  },

  async help({ run }) {
    const { code, out } = await run("help");
    expectThat(code === 0 && out.includes("POSTRIDER_DATA_DIR") && out.includes("postrider demo"), "it is whole", out);
  },

  async licenses({ run }) {
    const { code, out } = await run("licenses");
    // More than a pipe takes at once, so this is also about the end of a long text.
    const isWhole = out.length > 70_000 && out.startsWith("MIT License") && out.includes("\nvalibot ");
    expectThat(code === 0 && isWhole, "they are whole, from the program's to the last package's", out.length);
  },

  async "wrong usage"({ run }) {
    const { code, out, err } = await run("serv");
    const expected = 'postrider: There is no command "serv". Try: postrider serve\n';
    expectThat(code === 2 && out === "" && err === expected, "one line and exit code 2", { code, out, err });
  },

  async "a malformed setting"({ run }) {
    const { code, err } = await run("serve", { POSTRIDER_PORT: "http" });
    const expected =
      'postrider: POSTRIDER_PORT must be a whole number from 0 to 65535, not "http". Try: POSTRIDER_PORT=8080\n';
    expectThat(code === 1 && err === expected, "one line and exit code 1", { code, err });
  },

  async "check-url"({ run }) {
    const good = await run("check-url http://127.0.0.1:9000/hook");
    expectThat(good.code === 0 && good.out.startsWith("allowed"), "loopback is allowed in local mode", good);
    const bad = await run("check-url https://169.254.169.254/ --json");
    expectThat(bad.code === 1 && bad.out.includes('"address_not_public"'), "the metadata service is refused", bad);
  },

  async demo({ run }) {
    const { code, out, err } = await run("demo");
    expectThat(code === 0 && out.includes("Every check passed"), "all of it holds", { code, out, err });
    expectThat(out.includes("18 signatures verified"), "every signature is verified", out);
  },

  async "serve, with its worker, and an end in order"({ start, run }) {
    const server = await startServer(start);
    const login = await openAccount(server.url);
    // Statistics are counted in the Worker, which must be found inside the executable.
    const stats = await call(`${server.url}/v1/stats`, { headers: login });
    expectStatus(stats, 200, "GET /v1/stats");
    const filtered = await call(`${server.url}/v1/events?webhook=https://example.com/`, { headers: login });
    expectStatus(filtered, 200, "GET /v1/events?webhook=…");
    const list = await run("tenant list --json");
    expectThat(list.code === 0 && JSON.parse(list.out).total === 1, "the operator's command finds the server", list);

    server.child.kill("SIGTERM");
    const code = await server.child.exited;
    expectThat(code === 0, "SIGTERM ends it with 0", { code });
    const after = await run("tenant list");
    expectThat(after.code === 1 && after.err.includes("No server is running"), "then no server is found", after);
  },

  async "what is loaded on demand, each a file of its own inside the executable"({ folder, start, run }) {
    const identity = await generateIdentity();
    writeFileSync(join(folder, "identity"), identity);
    const env = {
      POSTRIDER_BACKUP_AGE_RECIPIENT: await identityToRecipient(identity),
      // Nothing listens there.
      POSTRIDER_SMTP_URL: "smtp://127.0.0.1:1",
      POSTRIDER_MAIL_FROM: "postrider@example.com",
    };
    const server = await startServer((words) => start(words, env));
    expectStatus(await call(`${server.url}/openapi.json`), 200, "GET /openapi.json");
    const mail = await run("mail test ada@example.com", env);
    expectThat(mail.code === 1 && mail.err.includes("ECONNREFUSED"), "it tries to send a mail", mail);
    const backup = await run("backup backup.age", env);
    const verified = await run("backup verify backup.age --identity identity", env);
    expectThat(backup.code === 0 && verified.code === 0, "its encrypted backup is whole", { backup, verified });
    server.child.kill("SIGTERM");
    await server.child.exited;
    const shared = await run("doctor", { POSTRIDER_DATABASE_URL: "postgres://postrider@127.0.0.1:1/none" });
    expectThat(shared.out.includes("nothing listens there"), "it looks for a PostgreSQL", shared);
  },

  async "send and listen"({ start, run }) {
    const server = await startServer(start);
    const { loginId, password } = await createAccount(server.url);
    const env = { POSTRIDER_URL: server.url, POSTRIDER_LOGIN: loginId, POSTRIDER_PASSWORD: password };
    const received = Promise.withResolvers<string | null>();
    const local = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch(request) {
        received.resolve(request.headers.get("service-event-id"));
        return new Response(null, { status: 204 });
      },
    });
    const listening = start(["listen", "--forward-to", `localhost:${local.port}/hook`], env);
    await whenSaid(listening.stderr, "Forwarding");
    const sent = await run('send {"hello":"world"}', env);
    expectThat(sent.code === 0 && sent.out.startsWith("evt_") && sent.err === "", "it sends an event", sent);
    const forwarded = await received.promise;
    expectThat(forwarded === sent.out.trim(), "it forwards the event", { forwarded, sent });
    await whenSaid(listening.stdout, `/events/${forwarded}`);
    listening.kill("SIGINT");
    const code = await listening.exited;
    expectThat(code === 0, "Ctrl+C ends it with 0", { code });
    await local.stop(true);
    server.child.kill("SIGTERM");
    await server.child.exited;
  },

  async "the image: a server that is asked for its health, and deliveries, with nothing else there"({
    executable,
    folder,
  }) {
    const image = layOutImage(executable, folder);
    if (image === null) throw new NotHere();
    const env = { PATH: process.env.PATH ?? "", POSTRIDER_DATA_DIR: "/data", POSTRIDER_PORT: "0" };
    const begin = (words: readonly string[]) => startInside(image, words, env);
    const healthcheck = async () => {
      const child = begin(["healthcheck"]);
      const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
      return { code: await child.exited, out, err };
    };
    const server = await startServer(() => begin(["serve"]));
    const ready = await healthcheck();
    expectThat(ready.code === 0 && ready.out.startsWith("ready: "), "it is ready", ready);
    server.child.kill("SIGTERM");
    expectThat((await server.child.exited) === 0, "SIGTERM ends it with 0", {});
    const gone = await healthcheck();
    expectThat(gone.code === 1 && gone.out === "" && /^postrider: .+\n$/.test(gone.err), "then it is not", gone);
    const demo = begin(["demo"]);
    const told = await new Response(demo.stdout).text();
    expectThat((await demo.exited) === 0 && told.includes("Every check passed"), "it delivers", told);
  },

  async "a port in use, and a folder in use"({ start, run }) {
    const server = await startServer(start);
    const port = new URL(server.url).port;
    const samePort = await run(`serve --port ${port} --data-dir other`);
    expectThat(
      samePort.code === 1 && samePort.err.includes("POSTRIDER_PORT"),
      "the port is said to be taken",
      samePort,
    );
    const sameFolder = await run("serve --port 0");
    expectThat(
      sameFolder.code === 1 && sameFolder.err.includes(`process ${server.child.pid}`),
      "the folder is said to be taken, and by whom",
      sameFolder,
    );
    server.child.kill("SIGKILL");
    await server.child.exited;
  },

  async "kill -9, and the same folder again"({ start }) {
    const first = await startServer(start);
    const login = await openAccount(first.url);
    first.child.kill("SIGKILL");
    await first.child.exited;
    const again = await startServer(start);
    expectStatus(await call(`${again.url}/v1/tenants/me`, { headers: login }), 200, "the session still holds");
    again.child.kill("SIGINT");
    const code = await again.child.exited;
    expectThat(code === 0, "SIGINT ends it with 0", { code });
  },
};

/** Starts a program in the image. */
const startInside = ({ inside }: Image, words: readonly string[], env: Record<string, string>) =>
  Bun.spawn(inside(words), { env, stdin: "ignore", stdout: "pipe", stderr: "pipe", timeout: limitMs });

/** Starts the server on a free port and reads where it listens from its log. */
async function startServer(start: Bench["start"]) {
  const child = start(["serve", "--port", "0"]);
  let text = "";
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const line = text.split("\n").find((each) => each.includes('"server.started"'));
    if (line !== undefined) return { child, url: (JSON.parse(line) as { url: string }).url };
  }
  throw new Error(`The server did not start: ${text}${await new Response(child.stderr).text()}`);
}

/** Reads until a text appears. */
async function whenSaid(stream: ReadableStream<Uint8Array>, text: string): Promise<void> {
  let said = "";
  for await (const chunk of stream) {
    said += new TextDecoder().decode(chunk);
    if (said.includes(text)) return;
  }
  throw new Error(`It ended without "${text}": ${said}`);
}

async function createAccount(url: string): Promise<{ loginId: string; password: string }> {
  const created = await call(`${url}/v1/tenants`, { method: "POST" });
  expectStatus(created, 201, "POST /v1/tenants");
  const { tenant_id: loginId = "", password = "" } = created.json as Record<string, string>;
  return { loginId, password };
}

/** The header that logs in to a new account. */
async function openAccount(url: string): Promise<{ Authorization: string }> {
  const body = await createAccount(url);
  const login = await call(`${url}/v1/tenants/auth/login`, { method: "POST", body });
  expectStatus(login, 200, "login");
  return { Authorization: `Bearer ${(login.json as { token: string }).token}` };
}

const expectStatus = ({ status, json }: Answer, expected: number, what: string) =>
  expectThat(status === expected, `${what} answers ${expected}`, { status, json });

function expectThat(holds: boolean, what: string, seen: unknown): void {
  if (!holds) throw new Error(`expected that ${what}, but: ${typeof seen === "string" ? seen : JSON.stringify(seen)}`);
}
