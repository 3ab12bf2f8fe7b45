import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type App, createApp } from "../../src/app.ts";
import { runCommand } from "../../src/cli/run.ts";
import { loadConfig } from "../../src/config.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createSelfSigned } from "../support/certificates.ts";
import { createScriptedIo } from "../support/scripted-io.ts";
import { enterFolder } from "../support/test-app.ts";

const folder = mkdtempSync(join(tmpdir(), "postrider-tenant-"));
let app: App;

/** With TLS and a certificate that nobody vouches for, for another host: the hardest case of the loopback call. */
beforeAll(async () => {
  const { cert, key } = createSelfSigned({ hosts: ["relay.example.com"] });
  writeFileSync(join(folder, "cert.pem"), cert);
  writeFileSync(join(folder, "key.pem"), key);
  const env = {
    POSTRIDER_PORT: "0",
    POSTRIDER_DATA_DIR: join(folder, "data"),
    POSTRIDER_TLS_CERT: join(folder, "cert.pem"),
    POSTRIDER_TLS_KEY: join(folder, "key.pem"),
    POSTRIDER_SIGNUP: "closed",
  };
  app = await createApp(loadConfig(env, new Map()), {
    runOwn: async () => ({ code: 1, out: "", err: "" }),
    clock: systemClock,
    log: silentLog,
    ...enterFolder(env.POSTRIDER_DATA_DIR),
  });
  await app.start();
});

afterAll(async () => {
  await app.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function tenant(words: string[], answers: string[] = []) {
  const { io, out, err, questions } = createScriptedIo({ answers, env: { POSTRIDER_DATA_DIR: join(folder, "data") } });
  const code = await runCommand(["tenant", ...words], io);
  return { code, out: out.join("\n"), err: err.join("\n"), questions };
}

async function json<T>(...words: string[]): Promise<T> {
  const { code, out, err } = await tenant([...words, "--json"]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return JSON.parse(out) as T;
}

interface Shown {
  tenant_id: string;
  tenant_name: string;
  tier: string;
  status: string;
  password: string;
}

const create = () => json<Shown>("create");

describe("postrider tenant", () => {
  test("list says so where there is no account, and where a page is behind the last one", async () => {
    expect((await tenant(["list"])).out).toBe("There are no accounts yet.");
    await create();
    expect((await tenant(["list", "--page", "1"])).out).toBe("This page is behind the last one.");
  });

  test("create gives a free account, or one with name, e-mail and tier", async () => {
    expect(await create()).toMatchObject({ tier: "free", password: expect.any(String) });
    const words = ["create", "--tier", "business", "--name", "Ada's bank", "--email", "ada@example.com"];
    expect(await json<Shown>(...words)).toMatchObject({
      tier: "business",
      name: "Ada's bank",
      email: "ada@example.com",
    });
  });

  test("create repeats the server's words when it refuses", async () => {
    const { code, err } = await tenant(["create", "--tier", "pro", "--name", "Ada's bank", "--email", "no address"]);
    expect(code).toBe(2);
    expect(err).toStartWith("postrider: email ");
  });

  test.each([
    [["create", "--tier", "pro"], "The tier pro needs --name. Try: --name NAME"],
    [["create", "--tier", "pro", "--name", "Ada"], "The tier pro needs --email. Try: --email ADDRESS"],
  ])("%p is told which flag it needs", async (words, said) => {
    expect(await tenant(words)).toMatchObject({ code: 2, err: `postrider: ${said}` });
  });

  test("list shows a page as a table", async () => {
    const { tenant_id: id } = await create();
    const { out } = await tenant(["list", "--size", "1"]);
    const [head, row, foot] = out.split("\n");
    expect(head).toMatch(/^tenant_id\s+tier\s+status\s+created_at\s+email\s+tenant_name$/);
    expect(row).toMatch(new RegExp(`^${id}\\s+free\\s+active\\s`));
    expect(foot).toMatch(/^1 of \d+$/);
  });

  test("names cannot move the cursor of the operator's terminal", async () => {
    const { tenant_id: id } = await json<Shown>("create", "--name", "a\u001b[2Jb\u202ec\nd");
    expect((await tenant(["show", id])).out).toContain("a?[2Jb?c?d");
  });

  test("set-limits sets what is named, and default resets it", async () => {
    const { tenant_id: id } = await json<Shown>("create");
    expect(await json<Shown>("set-limits", id, "--events", "50000", "--webhooks", "4")).toMatchObject({
      limits: { events_per_month: 50_000, webhooks: 4 },
    });
    const { code, out } = await tenant(["set-limits", id, "--events", "default", "--retention-days", "30"]);
    expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/max_webhooks +4\n/) });
    expect(out).toMatch(/limits +events_per_month –, webhooks 4, retention_days 30,/);
  });

  test.each([
    [
      [],
      "set-limits needs a limit. Try: --events N or --webhooks N or --retention-days N or --payload-days N or --storage N",
    ],
    [["--events", "many"], "--events must be a whole number from 0 to 1000000000000, or default. Try: --events 50000"],
    [
      ["--storage", "5GB"],
      "--storage must be a whole number from 0 to 1000000000000000, or default. Try: --storage 5000000000",
    ],
    [["--webhooks", "1000"], "--webhooks must be a whole number from 0 to 100, or default. Try: --webhooks 10"],
    [["--webhooks", "null"], "--webhooks must be a whole number from 0 to 100, or default. Try: --webhooks 10"],
  ])("set-limits with %p asks no server", async (flags, message) => {
    expect(await tenant(["set-limits", "t1", ...flags])).toMatchObject({ code: 2, err: `postrider: ${message}` });
  });

  test.each([
    [["list", "--size", "0"], 2, /size must be at least 1/],
    [["create", "--email", "nobody"], 2, /email must be an e-mail address/],
    [["set-limits", "t1", "--webhooks", "1000"], 2, /webhooks must be a whole number from 0 to 100/],
    [["show", "t1"], 1, /tenant does not exist/],
  ])("%p: exit code %i, by what the server refuses", async (words, code, message) => {
    expect(await tenant(words)).toMatchObject({ code, err: expect.stringMatching(message) });
  });

  test("set-tier, suspend and resume are in force at once", async () => {
    const { tenant_id: id } = await create();
    expect(await json<Shown>("set-tier", id, "enterprise")).toMatchObject({ tier: "enterprise" });
    expect(await json<Shown>("suspend", id, "--reason", "Sends spam.")).toMatchObject({ status: "suspended" });
    expect(await json<Shown>("show", id)).toMatchObject({ status: "suspended", tier: "enterprise", webhooks: 0 });
    expect(await json<Shown>("resume", id)).toMatchObject({ status: "active" });
  });

  describe("reset-password", () => {
    interface Reset extends Shown {
      ended?: string[];
    }
    const everything = ["sessions", "api_keys", "signing_secret"];

    test.each([
      ["alone keeps the keys where nobody can answer", [], undefined],
      ["with --keep-keys keeps them", ["--keep-keys"], undefined],
      ["with --end-keys ends them", ["--end-keys"], everything],
    ])("%s", async (_, flags, ended) => {
      const { tenant_id: id } = await create();
      const key = (await app.store.findTenant(id))?.key ?? 0;
      const secrets = async () => (await app.store.signingSecrets(key, Date.now())).length;
      const [before] = await app.store.apiKeys(key);
      const [secretBefore] = await app.store.signingSecrets(key, Date.now());
      expect((await json<Reset>("reset-password", id, ...flags)).ended).toEqual(ended as string[]);
      const active = (await app.store.apiKeys(key)).filter(({ expiresAt }) => expiresAt === null);
      const [secret] = await app.store.signingSecrets(key, Date.now());
      expect([active.length, active[0]?.id === before?.id, await secrets()]).toEqual([1, ended === undefined, 1]);
      expect(Buffer.compare(secret?.sealed ?? Buffer.of(), secretBefore?.sealed ?? Buffer.of()) === 0).toBe(
        ended === undefined,
      );
    });

    test.each([
      ["y", everything],
      ["", undefined],
    ])("asks on a terminal; answered %j it ends %j", async (answer, ended) => {
      const { tenant_id: id } = await create();
      const { io, out, questions } = createScriptedIo({
        answers: [answer],
        isTerminal: true,
        env: { POSTRIDER_DATA_DIR: join(folder, "data") },
      });
      expect(await runCommand(["tenant", "reset-password", id, "--json"], io)).toBe(0);
      expect(questions).toHaveLength(1);
      expect((JSON.parse(out.join("")) as Reset).ended).toEqual(ended as string[]);
    });

    test("does not take both flags", async () => {
      const { code, err } = await tenant(["reset-password", "t5k2m8q0w3r7xa", "--end-keys", "--keep-keys"]);
      expect([code, err]).toEqual([2, expect.stringContaining("one of them")]);
    });
  });

  test("reset-password gives another password", async () => {
    const { tenant_id: id, password } = await create();
    const reset = await json<Shown>("reset-password", id);
    expect(reset).toEqual({ tenant_id: id, password: expect.any(String) } as Shown);
    expect(reset.password).not.toBe(password);
  });

  test("delete asks for the id, and takes no other answer", async () => {
    const { tenant_id: id } = await create();
    expect(await tenant(["delete", id], ["yes"])).toMatchObject({
      code: 1,
      err: "Nothing was deleted: the id does not match.",
    });
    expect(await tenant(["delete", id])).toMatchObject({
      code: 1,
      err: "Nothing was deleted: this needs confirmation. Try: --yes",
    });
    const { code, out, questions } = await tenant(["delete", id], [id]);
    expect({ code, out }).toEqual({ code: 0, out: `${id} is deleted.` });
    expect(questions[0]).toContain(id);
    expect(await tenant(["show", id])).toMatchObject({
      code: 1,
      err: "postrider: The tenant does not exist. Try: postrider tenant list",
    });
  });

  test("delete --yes does not ask", async () => {
    const { tenant_id: id } = await create();
    expect(await tenant(["delete", id, "--yes"])).toMatchObject({ code: 0, questions: [] });
  });

  test("an id is one piece of the path, whatever it holds", async () => {
    for (const id of ["../tenants", "a/b", "%2e%2e", "?x", "#"]) {
      expect(await tenant(["show", "--", id])).toMatchObject({ code: 1, out: "" });
    }
    for (const id of ["..", ".", ""]) {
      expect(await tenant(["delete", "--yes", id])).toMatchObject({
        code: 2,
        err: `postrider: "${id}" is not an id. Try: postrider tenant list`,
      });
    }
  });
});
