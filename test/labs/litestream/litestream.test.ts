import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { proveKilledCommit } from "./killed-commit.ts";
import { proveReplication } from "./proof.ts";
import { litestream } from "./replicator.ts";

const folder = mkdtempSync(join(tmpdir(), "postrider-litestream-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.skipIf(litestream === null)(
  "Litestream follows three restarts, copies the whole database anew after the kill at most, and has every acknowledged event (needs it on the PATH)",
  async () => {
    const proof = await proveReplication({
      litestream: litestream ?? "",
      folder,
      seconds: 1,
      eventsPerSecond: 200,
      say() {},
    });
    expect(proof.faults).toEqual([]);
    expect(proof.acknowledged).toBeGreaterThan(400);
  },
  60_000,
);

test.skipIf(litestream === null)(
  "Litestream has what a server writes over the commit in which the one before was killed (needs it on the PATH)",
  async () => {
    const { faults, snapshots } = await proveKilledCommit({
      litestream: litestream ?? "",
      folder: mkdtempSync(join(folder, "killed-")),
    });
    expect(faults).toEqual([]);
    expect(snapshots).toEqual(["the first", expect.stringContaining("last page does not exist in last ltx file")]);
  },
  60_000,
);
