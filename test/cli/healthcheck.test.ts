import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call } from "../../src/cli/http-client.ts";
import { runCommand } from "../../src/cli/run.ts";
import { createSelfSigned } from "../support/certificates.ts";
import { createScriptedIo } from "../support/scripted-io.ts";
import { startTestApp } from "../support/test-app.ts";

async function healthcheck(env: Record<string, string>, ...flags: string[]) {
  const { io, out, err } = createScriptedIo({ env });
  const code = await runCommand(["healthcheck", ...flags], io);
  return { code, out: out.join("\n"), err: err.join("\n") };
}

const folder = mkdtempSync(join(tmpdir(), "postrider-healthcheck-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const { cert, key } = createSelfSigned({ hosts: ["relay.example.com"] });
const files = { POSTRIDER_TLS_CERT: join(folder, "cert.pem"), POSTRIDER_TLS_KEY: join(folder, "key.pem") };
writeFileSync(files.POSTRIDER_TLS_CERT, cert);
writeFileSync(files.POSTRIDER_TLS_KEY, key);

/** Answers what a server would, and notes for what it was asked. */
function standIn(answer: () => Response | Promise<Response>, tls?: { cert: string; key: string }) {
  const paths: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    ...(tls && { tls }),
    fetch(request) {
      paths.push(new URL(request.url).pathname);
      return answer();
    },
  });
  return { port: String(server.port), paths, [Symbol.asyncDispose]: () => server.stop(true) };
}

const ready = () => Response.json({ status: "ok" });
const isPublic = { POSTRIDER_HOST: "0.0.0.0", POSTRIDER_PUBLIC_URL: "https://relay.example.com" };

describe("postrider healthcheck", () => {
  test("finds a server by its port", async () => {
    await using server = standIn(ready);
    const { code, out, err } = await healthcheck({ POSTRIDER_PORT: server.port });
    expect({ code, out, err }).toEqual({ code: 0, out: `ready: http://127.0.0.1:${server.port}/readyz`, err: "" });
    expect(server.paths).toEqual(["/readyz"]);
  });

  test("takes the flags of serve that say where it listens", async () => {
    await using server = standIn(ready);
    expect((await healthcheck({}, "--port", server.port)).code).toBe(0);
  });

  test("is told of TLS where the server has it and the command was not given it", async () => {
    await using server = standIn(ready, { cert, key });
    expect(await healthcheck({ POSTRIDER_PORT: server.port })).toMatchObject({
      code: 1,
      err: expect.stringMatching(/closes the connection, as a server with TLS does\. Try: .*POSTRIDER_TLS_CERT/),
    });
  });

  test("dials loopback where the server listens everywhere, by TLS whatever the certificate's name", async () => {
    await using server = standIn(ready, { cert, key });
    const { code, out } = await healthcheck({ ...isPublic, ...files, POSTRIDER_PORT: server.port });
    expect({ code, out }).toEqual({ code: 0, out: `ready: https://127.0.0.1:${server.port}/readyz` });
  });

  test("asks the health port without TLS, if there is one", async () => {
    await using server = standIn(ready);
    const { code, out } = await healthcheck({ ...files, POSTRIDER_PORT: "1", POSTRIDER_HEALTH_PORT: server.port });
    expect({ code, out }).toEqual({ code: 0, out: `ready: http://127.0.0.1:${server.port}/readyz` });
  });

  test("says in the server's words why it is not ready", async () => {
    await using server = standIn(() => Response.json({ message: "The disk is almost full." }, { status: 503 }));
    const { code, out, err } = await healthcheck({ POSTRIDER_PORT: server.port });
    const url = `http://127.0.0.1:${server.port}/readyz`;
    expect({ code, out, err }).toEqual({
      code: 1,
      out: "",
      err: `postrider: not ready: The disk is almost full. (${url})`,
    });
  });

  test("says so when nothing listens", async () => {
    const { code, err } = await healthcheck({ POSTRIDER_PORT: "1" });
    expect(code).toBe(1);
    expect(err).toMatch(
      /^postrider: http:\/\/127\.0\.0\.1:1\/readyz does not answer \(.+\)\. Try: start the server, or [^\n]+$/,
    );
  });

  test("finds a server that has picked its own port, and says so when there is none", async () => {
    const server = await startTestApp();
    const env = { POSTRIDER_PORT: "0", POSTRIDER_DATA_DIR: server.dataDir };
    expect(await healthcheck(env)).toMatchObject({ code: 0, out: expect.stringMatching(/^ready: .+\/readyz$/) });
    await server.stop({ keepData: true });
    const { code, err } = await healthcheck(env);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining("No server is running") });
    rmSync(server.dataDir, { recursive: true, force: true });
  });
});

test("a question has an end, also to a server that takes it and says nothing", async () => {
  const { promise: never } = Promise.withResolvers<Response>();
  await using server = standIn(() => never);
  await expect(call(`http://127.0.0.1:${server.port}/readyz`, { withinMs: 50 })).rejects.toThrow(
    "no answer within 0.05 s",
  );
});
