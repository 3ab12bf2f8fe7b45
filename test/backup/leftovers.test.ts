import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stage } from "../../src/backup/folder.ts";
import { verifyBackup } from "../../src/backup/verify.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createBackedUp } from "../support/backed-up.ts";

const nobody = 65_534;

async function asNobody<T>(work: () => Promise<T>): Promise<T> {
  process.seteuid?.(nobody);
  try {
    return await work();
  } finally {
    process.seteuid?.(0);
  }
}

/** A folder as /tmp is: everybody may write in it, and remove what is their own. */
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postrider-leftovers-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function* pieces(bytes: Uint8Array) {
  yield bytes;
}

describe.skipIf(process.getuid?.() !== 0)("what another user's killed process has left for a day", () => {
  /** @param mode of the folder: with 0o1773, others cannot even list it */
  function leave(name: string, make: (path: string) => void, mode: number): void {
    make(join(folder, name));
    utimesSync(join(folder, name), 1, 1);
    chmodSync(folder, mode);
  }

  test.each([0o1777, 0o1773])("stays, and no backup is the less verified, in a folder of mode %o", async (mode) => {
    const world = await createBackedUp();
    const backup = readFileSync(await world.backUp(`${world.folder}/b.tar.zst`));
    const left = "postrider-verify-1-x";
    leave(left, (path) => mkdirSync(path, { mode: 0o700 }), mode);
    const verify = (bytes: Uint8Array) =>
      asNobody(() =>
        verifyBackup({
          ...{ source: pieces(bytes), from: "b", parent: folder, clock: systemClock },
          ...{ identities: [], masterKeys: [], leaveFreeBytes: 0, signal: new AbortController().signal },
        }),
      );
    expect((await verify(backup)).faults).toEqual([]);
    await expect(verify(new Uint8Array(9))).rejects.toThrow("Try: ");
    expect(readdirSync(folder)).toEqual([left]);
    world.remove();
  });

  test.each([0o1777, 0o1773])("stays, and a backup is written beside it, in a folder of mode %o", async (mode) => {
    const left = ".postrider-x.unfinished-1";
    leave(left, (path) => writeFileSync(path, "", { mode: 0o600 }), mode);
    const { bytes, remove } = await asNobody(() =>
      stage({ folder, leaveFreeBytes: 0, name: "b" }, pieces(new Uint8Array(9))),
    );
    expect(bytes).toBe(9);
    await remove();
    expect(readdirSync(folder)).toEqual([left]);
  });
});
