import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { proveReplication } from "./proof.ts";
import { litestream } from "./replicator.ts";

const folder = mkdtempSync(join(tmpdir(), "postrider-litestream-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.skipIf(litestream === null)(
  "Litestream follows three restarts without a new snapshot, and has every acknowledged event (needs it on the PATH)",
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
