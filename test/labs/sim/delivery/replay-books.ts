import type { Findings } from "./invariants.ts";
import type { DeliveryRow, EventRow, ReplayRow } from "./witness.ts";

export interface ReplayBookDeps {
  findings: Findings;
  /** As they are at this point of the log. */
  records: ReadonlyMap<number, DeliveryRow>;
  events: ReadonlyMap<number, EventRow>;
  /** Webhooks that are registered and not disabled. */
  openOf(tenantKey: number): ReadonlySet<number>;
}

interface Entry {
  row: ReplayRow;
  /** Webhooks that were registered as it was asked for, and records that were FAILED for them then. */
  readonly registered: ReadonlySet<number>;
  readonly failed: readonly DeliveryRow[];
  /** `event webhook` of each record that it has begun a run of. */
  readonly queued: Set<string>;
  delivered: number;
  failedRuns: number;
  superseded: number;
  returned: number;
}

const ends = ["completed", "cancelled"];
const steps: Readonly<Record<ReplayRow["phase"], readonly ReplayRow["phase"][]>> = {
  waiting: ["queueing", "queued", "cancelled"],
  queueing: ["queueing", "queued", "cancelled"],
  queued: ["completed", "cancelled"],
  completed: [],
  cancelled: [],
};

const pairOf = ({ event_seq, webhook_key }: DeliveryRow) => `${event_seq} ${webhook_key}`;

/** Keeps the books of all replays beside those of the program. */
export function createReplayBooks({ findings, records, events, openOf }: ReplayBookDeps) {
  const { expect, broken } = findings;
  const replays = new Map<number, Entry>();
  const find = (key: number | null) => (key === null ? undefined : replays.get(key));

  function begin(row: ReplayRow): void {
    const registered = new Set(openOf(row.tenant_key));
    const failed = [...records.values()].filter(
      ({ tenant_key, state, webhook_key }) =>
        tenant_key === row.tenant_key && state === 2 && webhook_key !== null && registered.has(webhook_key),
    );
    const counts = { delivered: 0, failedRuns: 0, superseded: 0, returned: 0 };
    replays.set(row.key, { row, registered, failed, queued: new Set(), ...counts });
    if (row.kind === "failed") return;
    const { length } = selectedEvents(row);
    expect(row.selected === length, "replays", () => `${row.id} selected ${row.selected} events of ${length}`);
  }

  const selectedEvents = ({ tenant_key, from_seq, to_seq }: ReplayRow) =>
    [...events.values()].filter(
      ({ seq, tenant_key: owner }) => owner === tenant_key && seq >= from_seq && seq <= to_seq,
    );

  /** A completed replay leaves nothing out that was there, and registered, all the while. */
  function complete({ row, registered, failed, queued }: Entry): void {
    const now = openOf(row.tenant_key);
    const lasting = [...registered].filter((key) => now.has(key));
    if (row.kind !== "failed") {
      for (const { seq } of selectedEvents(row)) {
        for (const key of lasting) {
          expect(
            queued.has(`${seq} ${key}`),
            "selection",
            () => `${row.id} (${row.kind}) left out event ${seq} for webhook ${key}`,
          );
        }
      }
      return;
    }
    for (const record of failed) {
      if (record.webhook_key === null || !now.has(record.webhook_key) || record.event_seq > row.to_seq) continue;
      // Another replay may have begun the run that is under way.
      const isOvertaken = (records.get(record.key)?.run ?? 0) > record.run;
      expect(
        isOvertaken || queued.has(pairOf(record)),
        "selection",
        () => `${row.id} (failed) left out record ${record.key}`,
      );
    }
  }

  return {
    changed(was: ReplayRow | null, is: ReplayRow): void {
      if (was === null) {
        begin(is);
        return;
      }
      const entry = replays.get(is.key);
      if (!entry) return;
      entry.row = is;
      if (was.phase === is.phase) return;
      expect(steps[was.phase].includes(is.phase), "replays", () => `${is.id} went from ${was.phase} to ${is.phase}`);
      if (is.phase === "completed") complete(entry);
    },

    /** A replay has begun a run of this record. */
    queued(record: DeliveryRow, was: DeliveryRow | null): void {
      const entry = find(record.replay_key);
      if (!entry) {
        broken("replays", `record ${record.key} was queued by a replay that is not there`);
        return;
      }
      const { row, queued } = entry;
      const pair = pairOf(record);
      expect(!queued.has(pair), "replays", () => `${row.id} queued ${pair} twice`);
      queued.add(pair);
      const isSelected = record.event_seq >= row.from_seq && record.event_seq <= row.to_seq;
      expect(
        isSelected && record.tenant_key === row.tenant_key,
        "replays",
        () => `${row.id} queued ${pair}, not selected`,
      );
      expect(!ends.includes(row.phase), "replays", () => `${row.id} queued ${pair} after it was ${row.phase}`);
      if (row.kind === "failed") {
        expect(was === null || was.state !== 1, "replays", () => `${row.id} queued ${pair}, which was acknowledged`);
      }
      const overtaken = was?.state === 0 ? find(was.replay_key) : undefined;
      if (overtaken) overtaken.superseded += 1;
    },

    ended(replayKey: number | null, how: "delivered" | "failed"): void {
      const entry = find(replayKey);
      if (entry) entry[how === "delivered" ? "delivered" : "failedRuns"] += 1;
    },

    corrected(replayKey: number | null): void {
      const entry = find(replayKey);
      if (!entry) return;
      entry.failedRuns -= 1;
      entry.delivered += 1;
    },

    /** What waited for a replay is what it was before, or is gone. */
    returned({ key, replay_key }: DeliveryRow): void {
      const entry = find(replay_key);
      expect(entry?.row.phase === "cancelled", "cancelled", () => `record ${key} left ${entry?.row.id}, which goes on`);
      if (entry) entry.returned += 1;
    },

    tenantDeleted(tenantKey: number): void {
      for (const [key, { row }] of replays) if (row.tenant_key === tenantKey) replays.delete(key);
    },

    close(deletedTenants: ReadonlySet<number>): void {
      for (const { row, queued, delivered, failedRuns, superseded, returned } of replays.values()) {
        if (deletedTenants.has(row.tenant_key)) continue;
        const own = `${queued.size} queued, ${delivered} delivered, ${failedRuns} failed, ${superseded} superseded, ${returned} returned`;
        const told = `${row.queued} queued, ${row.delivered} delivered, ${row.failed} failed, ${row.superseded} superseded, ${row.returned} returned`;
        expect(own === told, "replays", () => `${row.id} says ${told}; there were ${own}`);
        expect(ends.includes(row.phase), "replays", () => `${row.id} (${row.kind}) is still ${row.phase}`);
        const isWhole = delivered + failedRuns + superseded + returned === queued.size;
        expect(isWhole, "replays", () => `${row.id} is ${row.phase}, with ${own}`);
      }
    },
  };
}
