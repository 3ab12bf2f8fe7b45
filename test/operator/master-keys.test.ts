import { afterEach, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { MasterKeyFiles } from "../../src/home.ts";
import { createLog } from "../../src/lib/log.ts";
import { masterKeyFilesOf } from "../../src/master-key-file.ts";
import { createMasterKeys } from "../../src/operator/master-keys.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** A server that is about to use the next key, and shares its files with others. */
function begin(promote: (files: MasterKeyFiles) => void) {
  const folder = mkdtempSync(join(tmpdir(), "postrider-master-keys-"));
  folders.push(folder);
  const [former, next] = [randomBytes(32), randomBytes(32)];
  const file = join(folder, "master-key");
  const write = (path: string, key: Buffer) => writeFileSync(path, `${key.toString("hex")}\n`, { mode: 0o600 });
  write(file, former);
  write(`${file}.next`, next);
  const files = masterKeyFilesOf(folder, file, true);
  const lines: string[] = [];
  const keys = createMasterKeys({
    masterKey: former,
    home: { masterKeyFiles: { ...files, promote: () => promote(files) } },
    log: createLog({ level: "info", format: "json", now: () => 0, out: (line) => lines.push(line) }),
  });
  keys.look();
  keys.use(next);
  const keyIn = (path: string) => Buffer.from(readFileSync(path, "utf8").trim(), "hex");
  return { file, keyIn, former, next, keys, lines };
}

describe("a master key that several servers put in place at once", () => {
  test("is no warning for the one that comes second, and the former one is kept", () => {
    const { file, keyIn, former, next, keys, lines } = begin((files) => {
      files.promote();
      files.promote();
    });
    expect(lines).toEqual([]);
    expect([keys.isInPlace(), existsSync(`${file}.next`)]).toEqual([true, false]);
    expect([keyIn(file), keyIn(`${file}.before`)]).toEqual([next, former]);
  });

  test("is put there by the one that another has got in the way of", () => {
    let tries = 0;
    const { file, keyIn, former, next, lines } = begin((files) => {
      tries += 1;
      if (tries === 1) renameSync(`${files.current}.before.new`, `${files.current}.before`);
      files.promote();
    });
    expect([tries, lines]).toEqual([2, []]);
    expect([keyIn(file), keyIn(`${file}.before`)]).toEqual([next, former]);
  });
});

test("a master key that nobody can put in place is one warning, which says what to do", () => {
  const { keys, lines } = begin(() => {
    throw new Error("EROFS: read-only file system");
  });
  expect(keys.isInPlace()).toBe(false);
  expect(lines).toEqual([
    expect.stringMatching(
      /storage\.warning.*cannot take the place of .*EROFS.* Try: put it there yourself; until then a start needs both files\./,
    ),
  ]);
});
