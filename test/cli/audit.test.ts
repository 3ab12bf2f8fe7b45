import { expect, test } from "bun:test";
import { runCommand } from "../../src/cli/run.ts";
import { createScriptedIo } from "../support/scripted-io.ts";
import { startTestApp } from "../support/test-app.ts";

test("postrider audit lists who did what, and which user of the machine ran the operator's command", async () => {
  const server = await startTestApp();
  const run = async (...args: string[]) => {
    const { io, out, err } = createScriptedIo({ env: { POSTRIDER_DATA_DIR: server.dataDir } });
    return { code: await runCommand(args, io), out: out.join("\n"), err: err.join("\n") };
  };
  const ada = await server.account();
  await run("tenant", "suspend", ada.id);

  const { code, out } = await run("audit", "--tenant", ada.id);
  expect(code).toBe(0);
  const [head, suspended = "", ...rest] = out.split("\n");
  expect(head).toMatch(/^at +account +action +by +address +detail$/);
  expect(suspended).toMatch(/account\.suspended +command of [\w.@-]+ +127\.0\.0\.1/);
  expect(rest.join("\n")).toMatch(/account.created +account +127.0.0.1 +tier: free\n4 of 4\.$/);

  const json = await run("audit", "--action", "login", "--from", "1h", "--size", "1", "--json");
  expect(JSON.parse(json.out)).toMatchObject({ entries: [{ action: "login", tenant_id: ada.id }], total: 1 });
  expect((await run("audit", "--to", "2020-01-01")).out).toBe("No entries match.");
  expect((await run("audit", "--page", "1")).out).toBe("This page is behind the last one.");
  expect(await run("audit", "--size", "0")).toMatchObject({ code: 2, err: expect.stringContaining("size must be") });
  expect(await run("audit", "--from", "soon")).toMatchObject({ code: 2, err: expect.stringContaining("--from") });
  expect(await run("audit", "--action", "logn")).toMatchObject({ code: 2, err: expect.stringMatching(/Try: login$/) });
  const { err } = await run("audit", "--action", "bogus");
  expect(err).toBe('postrider: "bogus" is not an action. Try: postrider help audit, which lists them');
  expect((await run("help", "audit")).out).toContain("webhooks.changed");
  await server.stop();
});
