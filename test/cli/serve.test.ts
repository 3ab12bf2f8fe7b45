import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createOperatorClient } from "../../src/cli/operator-client.ts";
import { runCommand } from "../../src/cli/run.ts";
import { until } from "../support/api-server.ts";
import { createScriptedIo, type Script } from "../support/scripted-io.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postrider-serve-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A server that is ended as soon as it says that it runs. @returns all that it printed */
async function serve({ env = {}, isTerminal = true }: Script): Promise<string> {
  const given = { POSTRIDER_DATA_DIR: folder, POSTRIDER_PORT: "0", POSTRIDER_MIN_FREE_DISK: "0", ...env };
  const { io, out, err, when, interrupt } = createScriptedIo({ env: given, isTerminal });
  const ended = runCommand(["serve"], io);
  await when(out, (line) => line.includes("Postrider is running") || line.includes("server.started"));
  interrupt();
  expect([await ended, err]).toEqual([0, []]);
  return out.join("\n");
}

describe("the operator token", () => {
  test("is shown on a terminal by the first start of local mode, and by no other", async () => {
    const first = await serve({});
    expect(first).toMatch(/API reference.* http:\S+\/docs\n/);
    const file = join(folder, "operator-token");
    const token = (await Bun.file(file).text()).trim();
    expect(first).toMatch(new RegExp(`/operator\\n.*${token}, shown this once: later by postrider operator token`));
    expect(await serve({})).not.toContain("operator");
    // Lost and made anew is as on the first start.
    rmSync(file);
    expect(await serve({})).toContain((await Bun.file(file).text()).trim());
  });

  test.each<[string, Script]>([
    ["in public mode", { env: { POSTRIDER_PUBLIC_URL: "https://relay.example.com" } }],
    ["where a program reads", { isTerminal: false }],
    ["in a log of JSON", { env: { POSTRIDER_LOG_FORMAT: "json" } }],
  ])("is not shown %s", async (_where, script) => {
    expect(await serve(script)).not.toContain("svc_op_");
  });
});

describe("a server that got its public address as a flag", () => {
  /** Does something beside it. */
  async function beside(env: Record<string, string>, act: (env: Record<string, string>) => Promise<void>) {
    const given = {
      POSTRIDER_DATA_DIR: folder,
      POSTRIDER_PORT: "0",
      POSTRIDER_HOST: "0.0.0.0",
      POSTRIDER_ALLOW_TARGETS: "10.0.0.0/8",
      POSTRIDER_BACKUP_URL: join(folder, "backups"),
      POSTRIDER_MIN_FREE_DISK: "0",
      ...env,
    };
    const { io, out, when, interrupt } = createScriptedIo({ env: given });
    const flags = ["--public-url", "https://relay.example.com", "--signup", "closed"];
    const ended = runCommand(["serve", ...flags], io);
    await when(out, (line) => line.includes("server.started"));
    await act(given).finally(interrupt);
    expect(await ended).toBe(0);
  }

  test("makes its own backups with it", () =>
    // The flags stand above these, so the server does not mind them.
    beside({ POSTRIDER_PUBLIC_URL_FILE: join(folder, "missing"), POSTRIDER_SIGNUP: "ajar" }, async () => {
      const { send } = createOperatorClient(folder);
      await send("POST", "/operator/backups");
      const { latest } = await until(
        async () => (await send("GET", "/operator/backups")) as { under_way: string | null; latest: unknown },
        ({ under_way }) => under_way === null,
      );
      expect(latest).toMatchObject({ kind: "backup", error: null });
    }));

  test("counts a backup that a command has made in its place", () =>
    beside({}, async (env) => {
      const { send } = createOperatorClient(folder);
      const { io, out, err } = createScriptedIo({ env });
      expect([await runCommand(["backup", "--verify", "--json"], io), err]).toEqual([0, []]);
      const name = JSON.parse(out.join("")).backup.split("/").at(-1);
      const list = (await send("GET", "/operator/backups")) as { backups: readonly unknown[] };
      expect(list).toMatchObject({ latest: { kind: "backup", name, error: null }, latest_backup: { name } });
      expect(list.backups[0]).toMatchObject({ name, verified: true });

      const elsewhere = createScriptedIo({ env: { ...env, POSTRIDER_BACKUP_URL: join(folder, "others") } });
      expect(await runCommand(["backup"], elsewhere.io)).toBe(0);
      expect(elsewhere.err).toEqual(["The server does not count this backup: There is no backup of that name."]);
    }));

  test.each([["tenant list"], ["resume"], ["operator token"], ["operator rotate-token"], ["healthcheck"], ["backup"]])(
    "leaves %s to work in its environment alone",
    (line) =>
      beside({}, async (env) => {
        const { io, err } = createScriptedIo({ env });
        expect([await runCommand(line.split(" "), io), err]).toEqual([0, []]);
      }),
  );
});
