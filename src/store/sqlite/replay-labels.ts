import type { Database } from "bun:sqlite";
import { createHash } from "node:crypto";
import { cutLabel } from "../../domain/replay.ts";

/** Stores labels of replays: long ones separately, each once per account. */
export function createReplayLabels(client: Database) {
  const insert = client.prepare(
    "insert into replay_label (tenant_key, hash, text) values (?1, ?2, ?3) on conflict do nothing",
  );
  const at = client.prepare<{ key: number }, [number, Uint8Array]>(
    "select key from replay_label where tenant_key = ?1 and hash = ?2",
  );

  /** What goes into the replay's own row: the label as attempts show it, and the key of the full text if it is long. */
  return function keepLabel(tenantKey: number, label: string): [shown: string, labelKey: number | null] {
    const shown = cutLabel(label);
    if (shown === label) return [label, null];
    const hash = createHash("sha256").update(label).digest();
    insert.run(tenantKey, hash, label);
    return [shown, at.get(tenantKey, hash)?.key ?? null];
  };
}
