import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, type RequestOptions, request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { createCertificateWatch } from "../../src/http/certificate-watch.ts";
import type { CertificatePair } from "../../src/lib/certificate.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/log.ts";
import { openReception, type Reception } from "../../src/reception.ts";
import { createSelfSigned } from "../support/certificates.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { freePort } from "../support/receiver-programs.ts";
import { startTestApp, type TestApp } from "../support/test-app.ts";

const rest = () => new Promise<void>((resolve) => setImmediate(resolve));

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Files of a certificate and its key, which a test may change. */
function certificateFiles(pair: CertificatePair) {
  const folder = mkdtempSync(join(tmpdir(), "postrider-tls-"));
  folders.push(folder);
  const files = { certFile: join(folder, "cert.pem"), keyFile: join(folder, "key.pem") };
  const write = ({ cert, key }: CertificatePair) => {
    writeFileSync(files.certFile, cert);
    writeFileSync(files.keyFile, key);
  };
  write(pair);
  return { ...files, write };
}

const first = createSelfSigned({ hosts: ["localhost", "first.example"] });
const second = createSelfSigned({ hosts: ["localhost", "second.example"] });

describe("the certificate of the listener", () => {
  const lookMs = 10_000;

  function watched(use: (pair: CertificatePair) => void = () => {}, canChange = () => true) {
    const files = certificateFiles(first);
    const clock = createFakeClock();
    const used: string[] = [];
    const lines: string[] = [];
    const log = createLog({ level: "debug", format: "json", now: clock.now, out: (line) => void lines.push(line) });
    const watch = createCertificateWatch({
      tls: { ...first, ...files },
      clock,
      log,
      canChange,
      use(pair) {
        use(pair);
        used.push(pair === first || pair.cert === first.cert ? "first" : "second");
      },
    });
    watch.start();
    return { files, clock, watch, used, logged: () => lines.splice(0).map((line) => JSON.parse(line)) };
  }

  test("that has expired is told, as it starts and as it is read again", () => {
    const { files, clock, watch, logged } = watched();
    expect(logged()).toEqual([]);
    clock.step(200 * 365 * 24 * 60 * 60_000);
    watch.start();
    expect(logged()).toMatchObject([{ event: "tls.expired", message: expect.stringContaining("Try: renew it") }]);
    files.write(second);
    watch.reload();
    expect(logged()).toMatchObject([{ event: "tls.reloaded" }, { event: "tls.expired" }]);
  });

  test("is that of the files as soon as two looks have found the same", () => {
    const { files, clock, used, logged } = watched();
    clock.advance(3 * lookMs);
    files.write(second);
    clock.advance(lookMs);
    expect(used).toEqual([]);
    clock.advance(lookMs);
    expect(used).toEqual(["second"]);
    expect(logged()).toMatchObject([{ event: "tls.reloaded", subject: expect.stringContaining("second.example") }]);
    clock.advance(10 * lookMs);
    expect([used, logged()]).toEqual([["second"], []]);
    files.write(first);
    clock.advance(2 * lookMs);
    expect(used).toEqual(["second", "first"]);
  });

  test("changes at once when asked, and not at all when the files have not", () => {
    const { files, watch, used, logged } = watched();
    watch.reload();
    expect([used, logged()]).toMatchObject([[], [{ event: "tls.unchanged" }]]);
    files.write(second);
    watch.reload();
    expect(used).toEqual(["second"]);
  });

  test("waits, also when asked, until the listener can change", () => {
    let canChange = false;
    const { files, clock, watch, used, logged } = watched(undefined, () => canChange);
    files.write(second);
    watch.reload();
    watch.reload();
    clock.advance(5 * lookMs);
    expect([used, logged()]).toEqual([[], []]);
    canChange = true;
    clock.advance(1000);
    expect([used, logged()]).toMatchObject([["second"], [{ event: "tls.reloaded" }]]);
    canChange = false;
    files.write(first);
    clock.advance(5 * lookMs);
    canChange = true;
    clock.advance(2 * lookMs);
    expect(used).toEqual(["second", "first"]);
  });

  test.each([
    ["no certificate", { ...second, cert: "none" }, /certificate file contains no certificate/],
    ["half a certificate", { ...second, cert: second.cert.replace(/\n.{64}\n/, "\n") }, /certificate cannot be read/],
    ["no key", { ...second, key: "none" }, /private key cannot be read/],
    ["the key of another", { ...second, key: first.key }, /private key does not match the certificate/],
  ])("stays when the files hold %s, which is said once", (_, broken, message) => {
    const { files, clock, watch, used, logged } = watched();
    files.write(broken);
    clock.advance(10 * lookMs);
    expect(used).toEqual([]);
    expect(logged()).toEqual([
      expect.objectContaining({ level: "error", event: "tls.refused", message: expect.stringMatching(message) }),
    ]);
    watch.reload();
    expect(logged()).toMatchObject([{ event: "tls.refused" }]);
    files.write(second);
    clock.advance(2 * lookMs);
    expect(used).toEqual(["second"]);
  });

  test("stays while a file is away, as between two steps of a renewal", () => {
    const { files, clock, watch, used, logged } = watched();
    rmSync(files.keyFile);
    clock.advance(3 * lookMs);
    expect([used, logged()]).toEqual([[], []]);
    watch.reload();
    expect(logged()).toMatchObject([{ event: "tls.refused" }]);
  });
});

describe("a server with TLS", () => {
  async function start(clock?: Clock) {
    const files = certificateFiles(first);
    const server = await startTestApp({
      ...(clock && { clock }),
      env: { POSTRIDER_TLS_CERT: files.certFile, POSTRIDER_TLS_KEY: files.keyFile },
    });
    const port = Number(new URL(server.url).port);
    return { files, server, port, [Symbol.asyncDispose]: () => server.stop() };
  }

  const events = ({ log }: TestApp) => log.map((line) => JSON.parse(line).event);

  function open(port: number): Promise<TLSSocket> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", port, servername: "localhost", rejectUnauthorized: false }, () =>
        resolve(socket),
      );
      socket.on("error", reject);
    });
  }

  async function namesOf(port: number): Promise<string> {
    const socket = await open(port);
    const { subjectaltname = "" } = socket.getPeerCertificate();
    socket.destroy();
    return subjectaltname;
  }

  /** Reads until a text has come. */
  const saidWith = (socket: TLSSocket, text: string) =>
    new Promise<string>((resolve, reject) => {
      let said = "";
      socket.on("data", (chunk) => {
        said += chunk;
        if (said.includes(text)) resolve(said);
      });
      socket.on("close", () => reject(new Error(`closed after ${said}`)));
    });

  test("shows new connections the new certificate; a request and a stream under way go on", async () => {
    await using at = await start();
    const local = { host: "localhost", "content-type": "application/json" };
    const call = (path: string, init: BunFetchRequestInit = {}) =>
      fetch(`https://127.0.0.1:${at.port}${path}`, {
        ...init,
        headers: { ...local, ...init.headers },
        tls: { rejectUnauthorized: false },
      });
    const account = (await (await call("/v1/tenants", { method: "POST", body: "{}" })).json()) as Record<
      string,
      string
    >;
    const credentials = JSON.stringify({ loginId: account.tenant_id, password: account.password });
    const login = await call("/v1/tenants/auth/login", { method: "POST", body: credentials });
    const { token } = (await login.json()) as { token: string };

    const stream = await open(at.port);
    const opened = saidWith(stream, ": open");
    const finished = saidWith(stream, "account.changed");
    stream.write(`GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    await opened;
    const upload = await open(at.port);
    const answered = saidWith(upload, "}");
    upload.write(
      `POST /v1/tenants/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${credentials.length}\r\n\r\n${credentials.slice(0, 9)}`,
    );

    expect(await namesOf(at.port)).toContain("first.example");
    at.files.write(second);
    // The head of the upload has arrived when an answer to a later connection has.
    await call("/healthz");
    expect(at.server.app.reloadCertificate()).toBe(true);
    expect(await namesOf(at.port)).toContain("second.example");
    upload.write(credentials.slice(9));
    expect(await answered).toStartWith("HTTP/1.1 200");
    const authorized = { headers: { Authorization: `Bearer ${token}` } };
    await call("/v1/tenants/signing-keys/rotate", { method: "POST", ...authorized });
    await finished;
    for (const socket of [stream, upload]) socket.destroy();
    expect(events(at.server)).toContain("tls.reloaded");
  });

  const sharesPorts = process.platform === "linux";
  test.skipIf(!sharesPorts)("loses no connection while it changes the certificate", async () => {
    const clock = createFakeClock();
    await using at = await start(clock);
    const keepAlive = new Agent({ keepAlive: true, rejectUnauthorized: false });
    const faults: string[] = [];
    let answers = 0;
    let heard = () => {};
    let over = false;
    const ask = (options: RequestOptions) =>
      new Promise<void>((resolve) => {
        const asked = request({ host: "127.0.0.1", port: at.port, path: "/healthz", ...options }, (answer) => {
          answers += 1;
          heard();
          answer.resume().on("end", resolve);
        });
        asked.on("error", ({ message }) => resolve(void faults.push(message)));
        asked.end();
      });
    const client = async (options: RequestOptions) => {
      while (!over) await ask({ headers: { host: "localhost" }, rejectUnauthorized: false, ...options });
    };
    const clients = [...Array(8)].map((_, i) => client({ agent: i % 2 === 0 ? keepAlive : false }));
    for (let i = 0; i < 20; i++) {
      const since = answers;
      at.files.write(i % 2 === 0 ? second : first);
      at.server.app.reloadCertificate();
      while (answers < since + 40) await new Promise<void>((resolve) => (heard = resolve));
      if (i % 3 === 2) clock.advance(5000);
    }
    over = true;
    await Promise.all(clients);
    keepAlive.destroy();
    expect(faults).toEqual([]);
    expect(await namesOf(at.port)).toContain("first.example");
  });

  test.skipIf(!sharesPorts)(
    "sends clients to a successor even after a change of the certificate has ended",
    async () => {
      const clock = createFakeClock();
      const at = await start(clock);
      folders.push(at.server.dataDir);
      const init = { headers: { host: "localhost" }, tls: { rejectUnauthorized: false } };
      at.files.write(second);
      at.server.app.reloadCertificate();
      const taken = Promise.withResolvers<void>();
      const successor = { pid: 1, version: "1", enter: async () => true, enterBeside: async () => true, kill() {} };
      const ended = at.server.app.handOver({ ...successor, takePort: () => taken.promise }).then(() => true);
      clock.advance(5000);
      const { headers } = await fetch(`https://127.0.0.1:${at.port}/healthz`, init);
      expect(headers.get("connection")).toBe("close");
      taken.resolve();
      while (!(await Promise.race([ended, rest()]))) clock.advance(100);
    },
  );

  /** What a successor opens on the port of a server (`handover.ts`). */
  function receive(port: number, { certFile, keyFile }: ReturnType<typeof certificateFiles>) {
    const tls = { ...first, certFile, keyFile };
    const reception = openReception({ host: "127.0.0.1", port, tls, idleTimeout: 10, maxRequestBodySize: 1024 });
    receptions.push(reception);
    return reception;
  }
  const receptions: Reception[] = [];
  afterEach(async () => {
    for (const reception of receptions.splice(0)) await reception.close();
  });

  /** Who answers new connections; enough of them that a distribution by hash would show. */
  async function answerers(port: number): Promise<Set<string>> {
    const init = { headers: { host: "localhost" }, keepalive: false, tls: { rejectUnauthorized: false } };
    const ask = async () => (await (await fetch(`https://127.0.0.1:${port}/healthz`, init)).text()) === "successor";
    const asked = await Promise.all([...Array(16)].map(ask));
    return new Set(asked.map((isSuccessor) => (isSuccessor ? "successor" : "server")));
  }

  test.skipIf(!sharesPorts)("keeps its port and its certificate while a successor starts beside it", async () => {
    const clock = createFakeClock();
    await using at = await start(clock);
    const letGo = at.server.app.keepPort();
    const reception = receive(at.port, at.files);
    reception.open(() => new Response("successor"));
    at.files.write(second);
    at.server.app.reloadCertificate();
    clock.advance(30_000);
    expect(await answerers(at.port)).toEqual(new Set(["server"]));
    expect(await namesOf(at.port)).toContain("first.example");
    // The successor was none, so the server goes on, with what was asked of it in the meantime.
    await reception.close();
    letGo?.();
    clock.advance(1000);
    expect(await namesOf(at.port)).toContain("second.example");
    expect(events(at.server).filter((event) => event === "tls.reloaded")).toHaveLength(1);
  });

  test.skipIf(!sharesPorts)("shows the certificate that it says it shows, right after it has taken over", async () => {
    const clock = createFakeClock();
    const port = freePort();
    const files = certificateFiles(first);
    const predecessor = receive(port, files);
    const reception = receive(port, files);
    expect(reception.steer()).toBe(true);
    await predecessor.close();
    const env = {
      POSTRIDER_PORT: String(port),
      POSTRIDER_TLS_CERT: files.certFile,
      POSTRIDER_TLS_KEY: files.keyFile,
    };
    const server = await startTestApp({ clock, reception, env });
    files.write(second);
    server.app.reloadCertificate();
    const shown = () => (events(server).includes("tls.reloaded") ? "second.example" : "first.example");
    expect(await namesOf(port)).toContain(shown());
    clock.advance(5000);
    while (!events(server).includes("tls.reloaded")) {
      clock.advance(1000);
      await rest();
    }
    expect(await namesOf(port)).toContain("second.example");
    expect(await answerers(port)).toEqual(new Set(["server"]));
    await server.stop();
  });

  test("keeps the old certificate when the new one is broken", async () => {
    await using at = await start();
    at.files.write({ ...second, key: "none" });
    at.server.app.reloadCertificate();
    expect(await namesOf(at.port)).toContain("first.example");
    expect(events(at.server)).toContain("tls.refused");
  });

  test("shares its port with no other server", async () => {
    await using at = await start();
    at.files.write(second);
    at.server.app.reloadCertificate();
    for (const env of [{}, { POSTRIDER_TLS_CERT: at.files.certFile, POSTRIDER_TLS_KEY: at.files.keyFile }]) {
      const other = startTestApp({ env: { ...env, POSTRIDER_PORT: String(at.port) } });
      expect(await other.then(() => "started", String)).toContain(`cannot listen on 127.0.0.1:${at.port}`);
    }
  });

  test("may change it many times, and ends in order", async () => {
    const at = await start();
    const hooks = process.listenerCount("beforeExit");
    for (let i = 0; i < 20; i++) {
      at.files.write(i % 2 === 0 ? second : first);
      at.server.app.reloadCertificate();
    }
    expect(process.listenerCount("beforeExit")).toBe(hooks);
    expect(await namesOf(at.port)).toContain("first.example");
    await at.server.stop();
    expect(await open(at.port).catch(({ code }) => code)).toBe("ECONNREFUSED");
  });
});
