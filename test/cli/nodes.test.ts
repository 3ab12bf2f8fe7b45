import { expect, test } from "bun:test";
import { runCommand } from "../../src/cli/run.ts";
import { createScriptedIo } from "../support/scripted-io.ts";
import { startTestApp } from "../support/test-app.ts";

async function nodes(dataDir: string, ...flags: string[]) {
  const { io, out, err } = createScriptedIo({ env: { POSTRIDER_DATA_DIR: dataDir } });
  const code = await runCommand(["nodes", ...flags], io);
  return { code, out: out.join("\n"), err: err.join("\n") };
}

test("postrider nodes lists a server on SQLite as the only one, for people and for programs", async () => {
  const server = await startTestApp({ env: { POSTRIDER_NODE_NAME: "relay-1" } });
  const { host } = new URL(server.url);

  const { code, out } = await nodes(server.dataDir);
  expect(code).toBe(0);
  const [head, row, ...more] = out.split("\n");
  expect(head).toMatch(/^slot +name +listener +since +heartbeat +jobs$/);
  expect(row).toMatch(/^0 \* +relay-1 +127\.0\.0\.1:\d+.* 0 s ago +biller, janitor, replayer$/);
  expect(more).toEqual([]);

  const answer = JSON.parse((await nodes(server.dataDir, "--json")).out);
  expect(answer.shared).toBe(false);
  expect(answer.nodes).toMatchObject([
    {
      slot: 0,
      lease_left_seconds: null,
      schema: null,
      listeners: expect.arrayContaining([host]),
      alive: true,
      answering: true,
    },
  ]);
  await server.stop();
});

test("postrider nodes says so when no server runs there", async () => {
  const { code, err } = await nodes("/nonexistent");
  expect(code).toBe(1);
  expect(err).toContain("No server is running on the data directory");
});
