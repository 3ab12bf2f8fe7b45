import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../support/api-server.ts";
import {
  freePort,
  isMissing,
  listening,
  outputWith,
  type Program,
  receiverPrograms,
  sendForgery,
} from "../support/receiver-programs.ts";
import { startTestApp, type TestApp } from "../support/test-app.ts";
import { example, root } from "./documents.ts";

describe("the examples of the documents, as written", () => {
  let server: TestApp;
  let folder: string;
  const processes: Bun.Subprocess[] = [];

  beforeAll(async () => {
    server = await startTestApp({
      // The receivers ask for a key set at most every two seconds.
      env: { POSTRIDER_PAYMENTS: "sandbox", POSTRIDER_RETRY_SCHEDULE: "3s" },
    });
    folder = mkdtempSync(join(tmpdir(), "postrider-docs-"));
  });

  afterAll(async () => {
    for (const child of processes) child.kill();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** A program of the documents; only addresses are this run's own. */
  function run(command: string[], env: Record<string, string> = {}): Program {
    const child = Bun.spawn(command, {
      cwd: folder,
      env: { ...process.env, ...env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    processes.push(child);
    return child;
  }

  /** Reads a stream until a text appears in it. */
  async function saidWith(stream: ReadableStream<Uint8Array>, text: string | RegExp): Promise<string> {
    let said = "";
    for await (const chunk of stream) {
      said += new TextDecoder().decode(chunk);
      if (said.match(text)) return said;
    }
    throw new Error(`The program ended without "${text}": ${said}`);
  }

  test("the first commands make an account, a webhook and a delivered, signed event", async () => {
    const port = freePort();
    const here = (text: string) =>
      text.replaceAll("http://localhost:8080", server.url).replaceAll("9000", String(port));
    const receiver = run(["bash", "-c", `exec ${here(example("receiver"))}`]);
    await listening(port);
    const shell = run([
      "bash",
      "-euo",
      "pipefail",
      "-c",
      `${here(example("quickstart"))}\n${here(example("inspect"))}`,
    ]);
    const received = await outputWith(receiver, "order.created");
    expect(received).toContain('"payload":{"event_type": "order.created", "total": 12.50}}');
    expect(received).toMatch(/^[A-Za-z0-9+/]{86}== \{/);
    const output = await new Response(shell.stdout).text();
    expect(output).toContain('"status":"accepted"');
    expect(output).toContain("202 Accepted");
    expect(await shell.exited).toBe(0);
  });

  test("the commands of the inbox show a delivery in it", async () => {
    const account = await server.account();
    const shell = run(
      ["bash", "-euo", "pipefail", "-c", example("inbox").replaceAll("http://localhost:8080", server.url)],
      {
        TOKEN: account.jwt,
        KEY: account.apiKey,
      },
    );
    expect(await shell.exited).toBe(0);
    const { body } = await until(
      () => account.get("/v1/inbox"),
      (answer) => answer.body.total === 1,
    );
    expect(body.deliveries[0].body).toContain('"payload":{"event_type": "order.paid", "total": 12.50}}');
  });

  test("the two commands of the sandbox verify a card", async () => {
    const paid = { tier: "pro", name: "Ada", email: "docs@example.com", password: "Corr3ct#Horse" };
    const { body } = await server.request("POST", "/v1/tenants", { body: paid });
    const shell = run(["bash", "-euo", "pipefail", "-c", example("payment")], {
      URL: body.payment_url.replace("localhost", "127.0.0.1"),
    });
    expect(await shell.exited).toBe(0);
    const active = await until(
      () => server.request("GET", `/v1/tenants/${body.tenant_id}/status`),
      (answer) => answer.body.status === "active",
    );
    expect(active.status).toBe(200);
  });

  test("listen prints and forwards what send sends: an event, a file, and lines", async () => {
    const port = freePort();
    const { id, password } = await server.account();
    writeFileSync(join(folder, "account.json"), JSON.stringify({ tenant_id: id, password }));
    const main = join(root, "src/main.ts");
    const shell = (...examples: string[]) =>
      run(
        [
          "bash",
          "-euo",
          "pipefail",
          "-c",
          `postrider() { "${process.execPath}" "${main}" "$@"; }\n${examples.join("\n")}`,
        ],
        {
          POSTRIDER_URL: server.url,
        },
      );
    const received = run(["bash", "-c", `exec ${example("receiver").replaceAll("9000", String(port))}`]);
    await listening(port);
    const [account, listen] = example("listen").split("\n\n");
    const listener = shell(
      `${account}\nexec "${process.execPath}" "${main}" ${listen?.replace("postrider", "").replaceAll("9000", String(port))}`,
    );
    await saidWith(listener.stderr, "Forwarding");
    const sender = shell(account ?? "", example("send"));
    expect(await sender.exited).toBe(0);
    const lines = await saidWith(listener.stdout, /(.* {2}200 {2}.*\n){4}/);
    expect(lines.trim().split("\n")).toHaveLength(4);
    await saidWith(received.stdout, /"payload":\{"n": 2\}\}/);
    listener.kill("SIGINT");
    expect(await listener.exited).toBe(0);
  });

  // Whoever does not have a language skips its example, by name; a commit is checked with all of them.
  const missing = receiverPrograms.filter(({ program }) => isMissing(program));
  test.skip.each(missing.map(({ name }) => name))(
    "%s verifies real deliveries, also by a new key, and outlives what is none",
    () => {},
  );
  test.each(receiverPrograms.filter((one) => !missing.includes(one)).map((one) => [one.name, one] as const))(
    "%s verifies real deliveries, also by a new key, and outlives what is none",
    async (_label, { file: name, command }) => {
      const file = join(folder, name);
      writeFileSync(file, example(name));
      const port = freePort();
      const account = await server.account({ webhooks: [{ webhook_url: `http://127.0.0.1:${port}/hook` }] });
      const secret = (await account.get("/v1/tenants/signing-secret")).body.secret;
      const { keys } = (await server.request("GET", `/v1/tenants/${account.id}/jwks.json`)).body;
      const program = run(command(file), {
        PORT: String(port),
        SIGNING_SECRET: secret,
        JWKS_URL: `${server.url}/v1/tenants/${account.id}/jwks.json`,
      });
      await listening(port);
      const unsigned = await fetch(`http://127.0.0.1:${port}/hook`, { method: "POST", body: "x" });
      expect(unsigned.ok).toBe(false);
      const { body } = await account.ingest({ hello: "world" });
      expect(await outputWith(program, body.eventId)).toContain(`verified ${body.eventId}`);
      expect(await sendForgery(port, keys[0].kid)).toBe(401);
      await account.post("/v1/tenants/signing-keys/rotate", { activate_after_seconds: 0 });
      const { body: later } = await account.ingest({ hello: "again" });
      expect(await outputWith(program, later.eventId)).toContain(`verified ${later.eventId}`);
    },
    120_000,
  );

  test.each(
    receiverPrograms
      .filter((one) => !missing.includes(one) && one.file !== "receiver.py")
      .map((one) => [one.name, one] as const),
  )(
    "%s keeps its keys while the key set cannot be fetched, and asks for it once, however many keys are unknown",
    async (_label, { file: name, command }) => {
      const file = join(folder, name);
      writeFileSync(file, example(name));
      const port = freePort();
      const account = await server.account({ webhooks: [{ webhook_url: `http://127.0.0.1:${port}/hook` }] });
      const { keys } = (await server.request("GET", `/v1/tenants/${account.id}/jwks.json`)).body;
      let isAway = false;
      let fetches = 0;
      const keySet = Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        fetch() {
          fetches++;
          const away = { message: "The server is shutting down.", code: "shutting_down" };
          return isAway ? Response.json(away, { status: 503 }) : Response.json({ keys });
        },
      });
      try {
        const program = run(command(file), { PORT: String(port), JWKS_URL: String(keySet.url) });
        await listening(port);
        const { body } = await account.ingest({ hello: "world" });
        expect(await outputWith(program, body.eventId)).toContain(`verified ${body.eventId}`);
        isAway = true;
        const forge = () => sendForgery(port, "sk_0");
        await until(forge, () => fetches === 2);
        const statuses = await Promise.all(Array.from({ length: 20 }, forge));
        expect(new Set(statuses)).toEqual(new Set([503]));
        expect(fetches).toBeLessThan(4);
        const { body: later } = await account.ingest({ hello: "again" });
        expect(await outputWith(program, later.eventId)).toContain(`verified ${later.eventId}`);
      } finally {
        await keySet.stop(true);
      }
    },
    120_000,
  );
});
