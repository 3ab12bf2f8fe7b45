import { describe, expect, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../../src/cli/run.ts";
import { clientSettings, settings } from "../../src/settings.ts";
import type { SettingInForce } from "../../src/settings-in-force.ts";
import { createSelfSigned } from "../support/certificates.ts";
import { createScriptedIo } from "../support/scripted-io.ts";

const folder = mkdtempSync(join(tmpdir(), "postrider-config-"));
const fileWith = (name: string, content: string) => {
  writeFileSync(join(folder, name), content, { mode: 0o600 });
  return join(folder, name);
};

async function config(env: Record<string, string> = {}, ...flags: string[]) {
  const { io, out, err } = createScriptedIo({ env });
  const code = await runCommand(["config", ...flags], io);
  return { code, out: out.join("\n"), err: err.join("\n") };
}

async function inForce(env: Record<string, string> = {}, ...flags: string[]) {
  const { code, out, err } = await config(env, "--json", ...flags);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  const shown = JSON.parse(out) as { mode: string; settings: SettingInForce[]; ignored: string[] };
  const of = (name: string) => shown.settings.find(({ setting }) => setting === `POSTRIDER_${name}`);
  return { ...shown, of };
}

describe("postrider config", () => {
  test("shows every setting of the server with the default of each", async () => {
    const shown = await inForce();
    expect(shown.settings.map(({ setting }) => setting)).toEqual(Object.values(settings).map(({ env }) => env));
    expect(shown.settings.filter(({ source }) => source !== "default")).toEqual([]);
    expect(shown.of("SIGNUP")).toEqual({
      ...{ setting: "POSTRIDER_SIGNUP", value: "open", source: "default", by: null, file: null, note: null },
    });
    expect(shown.mode).toBe("local");
  });

  test("says where each value is from", async () => {
    const file = fileWith("public-url", "https://relay.example.com\n");
    const env = { POSTRIDER_SIGNUP: "closed", POSTRIDER_PORT: "81", POSTRIDER_PUBLIC_URL_FILE: file };
    const shown = await inForce(env, "--port", "82");
    expect(shown.mode).toBe("public");
    expect(shown.of("SIGNUP")).toMatchObject({ value: "closed", source: "environment", by: "POSTRIDER_SIGNUP" });
    expect(shown.of("PORT")).toMatchObject({ value: "82", source: "flag", by: "--port" });
    expect(shown.of("PUBLIC_URL")).toMatchObject({
      ...{ value: "https://relay.example.com", source: "file", by: "POSTRIDER_PUBLIC_URL_FILE", file },
    });
    const { out } = await config(env, "--port", "82");
    expect(out).toMatch(/^POSTRIDER_PORT +82 +flag --port$/m);
    expect(out).toMatch(new RegExp(`^POSTRIDER_PUBLIC_URL +https://relay\\.example\\.com +file ${file}$`, "m"));
    expect(out).toEndWith("The server would run in public mode.");
  });

  test.each([
    ["PUBLIC_URL", {}, "http://localhost:8080", "of the listener"],
    [
      "DELIVERY_PROXY",
      { POSTRIDER_DELIVERY_PROXY: "http://relay:hush@proxy:3128" },
      ...(["http://relay:********@proxy:3128/", "it decides which addresses are reached"] as const),
    ],
    ["DISABLE_AFTER", { POSTRIDER_DISABLE_AFTER: "1h" }, "12h", "less counts as 12h"],
    ["DISABLE_AFTER", { POSTRIDER_DISABLE_AFTER: "12h" }, "12h", null],
    ["DISABLE_AFTER", { POSTRIDER_DISABLE_AFTER: "0" }, "0", null],
    ["RETRY_SCHEDULE", { POSTRIDER_RETRY_SCHEDULE: "none" }, "none", "one attempt"],
    ["PAYMENTS", {}, "sandbox", "auto"],
    ["PAYMENTS", { POSTRIDER_PUBLIC_URL: "https://relay.example.com" }, "off", "auto"],
    ["DELIVERY_RATE", { POSTRIDER_DELIVERY_RATE: "free=7" }, "none", "local mode has no such limit"],
    ["REPLAYS_PER_DAY", { POSTRIDER_PUBLIC_URL: "https://relay.example.com" }, "100", null],
  ] as [string, Record<string, string>, string, string | null][])(
    "%s with %p is what follows from all: %s",
    async (name, env, value, note) => expect((await inForce(env)).of(name)).toMatchObject({ value, note }),
  );

  test("shows no secret, wherever it is from", async () => {
    const secrets = Object.values(settings).filter(({ isSecret }: { isSecret?: true }) => isSecret);
    expect(secrets.length).toBeGreaterThan(2);
    for (const { env, example } of secrets) {
      // Mail needs both.
      const more = env === "POSTRIDER_SMTP_URL" ? { POSTRIDER_MAIL_FROM: "relay@example.com" } : {};
      for (const given of [{ [env]: example }, { [`${env}_FILE`]: fileWith(env, example) }]) {
        const all = { ...given, ...more };
        for (const { out } of [await config(all), await config(all, "--json")]) {
          expect(out).toContain("********");
          expect(out).not.toContain(example);
          expect(out).not.toContain(":secret@");
        }
      }
    }
    const { out } = await config({ POSTRIDER_DATABASE_URL: settings.databaseUrl.example });
    expect(out).toContain("postgres://postrider:********@db.internal:5432/postrider?sslmode=verify-full");
  });

  test("says nothing of what clients read, and names what it ignores", async () => {
    const secret = { [clientSettings.password.env]: "Corr3ct#Horse" };
    const { out } = await config({ ...secret, POSTRIDER_SERVICE_HOST: "10.0.0.1" });
    expect(out).not.toContain("Corr3ct");
    expect(out).toContain("Ignored, because a container platform has set them: POSTRIDER_SERVICE_HOST.");
  });

  const { cert } = createSelfSigned({ hosts: ["relay.example.com"] });
  const { key } = createSelfSigned({ hosts: ["relay.example.com"] });
  test.each([
    [
      "a malformed setting",
      { POSTRIDER_PORT: "http" },
      'POSTRIDER_PORT must be a whole number from 0 to 65535, not "http". Try: POSTRIDER_PORT=8080',
    ],
    ["a public listener without its address", { POSTRIDER_HOST: "0.0.0.0" }, "POSTRIDER_HOST=0.0.0.0 accepts"],
    [
      "a master key that is none",
      { POSTRIDER_MASTER_KEY_FILE: fileWith("key", "x") },
      "POSTRIDER_MASTER_KEY_FILE names",
    ],
    [
      "a key of another certificate",
      { POSTRIDER_TLS_CERT: fileWith("cert.pem", cert), POSTRIDER_TLS_KEY: fileWith("key.pem", key) },
      "POSTRIDER_TLS_CERT and POSTRIDER_TLS_KEY name files that cannot be used: The private key does not match",
    ],
  ] as [string, Record<string, string>, string][])("%s is refused in the words of a start", async (_, env, words) => {
    const refused = await config(env);
    expect([refused.code, refused.out]).toEqual([1, ""]);
    expect(refused.err).toStartWith(`postrider: ${words}`);
    const { io, err } = createScriptedIo({ env: { ...env, POSTRIDER_DATA_DIR: join(folder, "data") } });
    expect(await runCommand(["serve"], io)).toBe(1);
    expect(err.join("\n")).toBe(refused.err);
  });
});
