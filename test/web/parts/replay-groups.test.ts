import { describe, expect, test } from "bun:test";
import type { Replay } from "../../../web/api/types.ts";
import { sumOf } from "../../../web/parts/replay-groups.ts";

const single = (given: Partial<Replay>): Replay => ({
  ...{ id: "rpl_1", kind: "single", replayGroupId: "again", status: "completed", selected: 1, queued: 1 },
  ...{ delivered: 0, failed: 0, superseded: 0, skipped: 0, createdAt: "2026-03-01T12:34:56.789Z", completedAt: null },
  ...given,
});

describe("replays of one delivery each, as one", () => {
  test("count what became of all of them", () => {
    const replays = [single({ delivered: 1 }), single({ failed: 1 }), single({ queued: 0, skipped: 1 })] as const;
    expect(sumOf(replays, "Listed deliveries")).toMatchObject({
      ...{ kind: "Listed deliveries", replayGroupId: "again", status: "completed" },
      ...{ selected: 3, queued: 2, delivered: 1, failed: 1, skipped: 1, returned: 0 },
    });
  });

  test.each([
    ["running", ["completed", "running", "cancelled"]],
    ["cancelled", ["completed", "cancelled"]],
    ["completed", ["completed", "completed"]],
  ])("are %s when they are %p", (status, [first = "", ...others]) => {
    const replays = [single({ status: first }), ...others.map((each) => single({ status: each }))] as const;
    expect(sumOf(replays, "")).toMatchObject({ status });
  });
});
