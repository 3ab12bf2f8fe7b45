import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const main = join(import.meta.dir, "../../src/main.ts");
const folder = mkdtempSync(join(tmpdir(), "postrider-defect-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs the program with a defect in it. */
async function run(defect: string, ...args: readonly string[]): Promise<{ code: number; said: string }> {
  const preload = join(folder, "defect.ts");
  writeFileSync(preload, defect);
  const child = Bun.spawn([process.execPath, "--preload", preload, main, ...args], {
    env: { PATH: process.env.PATH ?? "", POSTRIDER_PORT: "0", POSTRIDER_DATA_DIR: join(folder, "data") },
    stdout: "ignore",
    stderr: "pipe",
  });
  return { said: await new Response(child.stderr).text(), code: await child.exited };
}

test.each([
  ["an exception", "setTimeout(() => { throw new Error('boom\\nand more') }, 200)"],
  ["a rejection", "setTimeout(() => Promise.reject(new Error('boom\\nand more')), 200)"],
])("%s that nobody expected ends the program with one line and an exit code of its own", async (_name, defect) => {
  expect(await run(defect, "serve")).toEqual({
    code: 70,
    said: expect.stringMatching(
      /^postrider: Unexpected error \(boom and more\); .* is stored\. Try: start it again.*\n$/,
    ),
  });
});

test("a command is to be run again, not started", async () => {
  const defect = "JSON.stringify = () => { throw new Error('boom') }";
  expect(await run(defect, "config", "--json")).toEqual({
    code: 70,
    said: expect.stringMatching(/^postrider: Unexpected error \(boom\); .* Try: run it again.*\n$/),
  });
});
