import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { snippets } from "../../../web/verify/snippets.ts";
import {
  freePort,
  isMissing,
  listening,
  outputWith,
  type Program,
  receiverPrograms,
  sendForgery,
} from "../../support/receiver-programs.ts";
import { startTestApp, type TestApp } from "../../support/test-app.ts";

const values = {
  jwksUrl: "https://relay.example.com/v1/tenants/t5k2m8q0w3r7xa/jwks.json",
  publicKeys: [
    { kid: "sk_new", x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" },
    { kid: "sk_old", x: "AAAA" },
  ],
  keyId: "sk_new",
};
const secret = "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0";

const codeOf = (given: Partial<Parameters<typeof snippets>[0]> = {}) =>
  new Map(snippets({ ...values, ...given }).map(({ file, code }) => [file, code]));

describe("snippets", () => {
  test("are the receivers in three languages", () => {
    expect(snippets(values).map(({ language, file }) => [language, file])).toEqual([
      ["JavaScript", "receiver.mjs"],
      ["Python", "receiver.py"],
      ["Go", "receiver.go"],
    ]);
  });

  test("name the tenant's keys where they take them, and a port", () => {
    const code = codeOf();
    for (const file of ["receiver.mjs", "receiver.go"]) {
      expect(code.get(file)).toContain(`"${values.jwksUrl}"`);
      expect(code.get(file)).toContain("sk_new (Ed25519, x: 11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo)");
      expect(code.get(file)).not.toMatch(/process\.env|os\.Getenv|"os"/);
    }
    for (const text of code.values()) expect(text).toContain("9000");
  });

  test("have the secret only when it is given", () => {
    for (const text of codeOf().values()) expect(text).not.toContain("whsec_c2");
    expect(codeOf().get("receiver.py")).toContain('os.environ["SIGNING_SECRET"]');
    const [...withSecret] = codeOf({ signingSecret: secret });
    expect(withSecret.filter(([, text]) => text.includes(secret)).map(([file]) => file)).toEqual(["receiver.py"]);
    expect(codeOf({ signingSecret: secret }).get("receiver.py")).not.toMatch(/\bos\b/);
  });

  test("hold whatever a value is within its quotes and its comment", () => {
    const trap = '"\\\n*/ $& $1 `x`';
    const code = codeOf({ jwksUrl: trap, signingSecret: trap, keyId: trap, publicKeys: [{ kid: trap, x: trap }] });
    for (const text of code.values()) expect(text.split("\n").filter((line) => line.startsWith("*/"))).toEqual([]);
    for (const [file, text] of code) {
      expect([file, text.split(JSON.stringify(trap)).length]).toEqual([file, 2]);
    }
  });
});

describe("a snippet, as it is pasted", () => {
  let server: TestApp;
  let folder: string;
  const programs: Program[] = [];

  beforeAll(async () => {
    server = await startTestApp();
    folder = mkdtempSync(join(tmpdir(), "postrider-snippets-"));
  });

  afterAll(async () => {
    for (const program of programs) program.kill();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  // Whoever does not have a language skips it, by name.
  const missing = receiverPrograms.filter(({ program }) => isMissing(program));
  test.skip.each(missing.map(({ name }) => name))("%s verifies a real delivery", () => {});
  test.each(receiverPrograms.filter((one) => !missing.includes(one)).map((one) => [one.name, one] as const))(
    "%s verifies a real delivery",
    async (_label, { file: name, command }) => {
      const port = freePort();
      const account = await server.account({ webhooks: [{ webhook_url: `http://127.0.0.1:${port}/hook` }] });
      const jwksUrl = `${server.url}/v1/tenants/${account.id}/jwks.json`;
      const { keys } = (await server.request("GET", `/v1/tenants/${account.id}/jwks.json`)).body;
      const signingSecret = (await account.get("/v1/tenants/signing-secret")).body.secret;
      const given = { jwksUrl, publicKeys: keys, keyId: keys[0].kid, signingSecret, port };
      const snippet = snippets(given).find(({ file }) => file === name);
      const file = join(folder, name);
      writeFileSync(file, snippet?.code ?? "");
      const { PORT: _, SIGNING_SECRET: _2, JWKS_URL: _3, ...env } = process.env;
      const program = Bun.spawn(command(file), { cwd: folder, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
      programs.push(program);
      await listening(port);
      const { body } = await account.ingest({ hello: "world" });
      expect(await outputWith(program, body.eventId)).toContain(`verified ${body.eventId}`);
      expect(await sendForgery(port, keys[0].kid)).toBe(401);
    },
    120_000,
  );
});
