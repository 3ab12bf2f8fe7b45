import { expect, test } from "bun:test";
import type { Replay } from "../../../web/api/types.ts";
import { lookOf } from "../../../web/parts/replay-look.ts";

const completed: Replay = {
  ...{ id: "rpl_1", kind: "single", replayGroupId: "again", status: "completed", selected: 2, queued: 2 },
  ...{ delivered: 2, failed: 0, superseded: 0, skipped: 0, createdAt: "2026-03-01T12:34:56.789Z", completedAt: null },
};

test.each<[Partial<Replay>, string, string]>([
  [{}, "Completed", "delivered"],
  [{ delivered: 0, superseded: 2 }, "Completed", "delivered"],
  [{ delivered: 1, failed: 1 }, "Some failed", "failed"],
  [{ delivered: 0, failed: 2 }, "All failed", "failed"],
  [{ queued: 0, delivered: 0 }, "Nothing to deliver", ""],
  [{ queued: 0, delivered: 0, skipped: 2 }, "Nothing to deliver", ""],
  [{ status: "running", queued: 0, delivered: 0 }, "Running", "running"],
  [{ status: "cancelled", queued: 0, delivered: 0 }, "Cancelled", ""],
  [{ status: "held", queued: 0, delivered: 0 }, "held", ""],
])("a replay with %j is called %p", (given, word, tone) => {
  expect(lookOf({ ...completed, ...given })).toMatchObject({ word, tone });
});
