import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { batchOf } from "../support/api-server.ts";
import { startTestApp, type TestAccount, type TestApp } from "../support/test-app.ts";

const folder = mkdtempSync(join(tmpdir(), "postrider-slow-reader-"));
const main = join(import.meta.dir, "../../src/main.ts");
const events = 300;
/** Together more than any pipe holds. */
const payload = { text: "x".repeat(1000) };

let app: TestApp;
let account: TestAccount;
beforeAll(async () => {
  app = await startTestApp();
  account = await app.account();
  await batchOf(app, account, events, payload);
});
afterAll(async () => {
  await app.stop();
  rmSync(folder, { recursive: true });
});

/** What limits the end of the program is over at once, and a moment after something is written it says so. */
const impatience = join(folder, "impatience.ts");
writeFileSync(
  impatience,
  `const later = setTimeout;
  globalThis.setTimeout = (run, ms, ...given) => later(run, ms === 2000 ? 0 : ms, ...given);
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = (...given) => {
    later(() => process.stderr.write("written"), 100);
    return write(...given);
  };`,
);

const listing = ["events", "list", "--json", "--size", "500"];
const environment = () => ({ ...process.env, POSTRIDER_URL: app.url, POSTRIDER_TOKEN: account.jwt });

/** `events list` into a pipe that is not read yet. */
async function list() {
  const pipe = join(folder, `${crypto.randomUUID()}.fifo`);
  Bun.spawnSync(["mkfifo", pipe]);
  // Either end would wait for the other one.
  const both = openSync(pipe, "r+");
  const [reading, writing] = [openSync(pipe, "r"), openSync(pipe, "w")];
  closeSync(both);
  const child = Bun.spawn([process.execPath, "--preload", impatience, main, ...listing], {
    env: environment(),
    stdout: writing,
    stderr: "pipe",
  });
  closeSync(writing);
  const said = child.stderr.getReader();
  const { value } = await said.read();
  expect(new TextDecoder().decode(value)).toBe("written");
  return {
    child,
    async read(): Promise<string> {
      const reader = Bun.spawn(["cat"], { stdin: reading, stdout: "pipe" });
      closeSync(reading);
      return new Response(reader.stdout).text();
    },
    leave: () => closeSync(reading),
  };
}

test.skipIf(process.platform === "win32")("a command whose output does not fit on the disk ends with 1", async () => {
  const into = join(folder, "cut.json");
  const child = Bun.spawn(
    // A limit on the size of a file stands for a full disk.
    ["bash", "-c", `trap '' XFSZ; ulimit -f 100; exec "$@" > ${into}`, "bash", process.execPath, main, ...listing],
    { env: environment(), stderr: "pipe" },
  );
  expect(await new Response(child.stderr).text()).toMatch(
    /^postrider: The output is incomplete \(EFBIG\b.*\)\. Try: free some space, or write it elsewhere\.\n$/,
  );
  expect(await child.exited).toBe(1);
});

describe.skipIf(process.platform === "win32")("a command whose reader takes its time", () => {
  test("waits until all of it is read", async () => {
    const { child, read } = await list();
    expect(JSON.parse(await read())).toMatchObject({ total: events });
    expect(await child.exited).toBe(0);
  });

  test("ends when the reader goes", async () => {
    const { child, leave } = await list();
    leave();
    expect(await child.exited).toBe(0);
  });

  test("ends on a signal", async () => {
    const { child, leave } = await list();
    child.kill("SIGTERM");
    expect(await child.exited).toBe(143);
    leave();
  });
});
