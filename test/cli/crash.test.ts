import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "postrider-defect-"));
afterAll(() => rmSync(folder, { recursive: true }));

test.each([
  ["an exception", "setTimeout(() => { throw new Error('boom\\nand more') }, 200)"],
  ["a rejection", "setTimeout(() => Promise.reject(new Error('boom\\nand more')), 200)"],
])("%s that nobody expected ends the program with one line and an exit code of its own", async (_name, defect) => {
  const preload = join(folder, "defect.ts");
  writeFileSync(preload, defect);
  const main = join(import.meta.dir, "../../src/main.ts");
  const child = Bun.spawn([process.execPath, "--preload", preload, main, "serve"], {
    env: { PATH: process.env.PATH ?? "", POSTRIDER_PORT: "0", POSTRIDER_DATA_DIR: join(folder, "data") },
    stdout: "ignore",
    stderr: "pipe",
  });
  const said = await new Response(child.stderr).text();
  expect(said).toMatch(/^postrider: Unexpected error \(boom and more\); .* is stored\. Try: start it again.*\n$/);
  expect(await child.exited).toBe(70);
});
