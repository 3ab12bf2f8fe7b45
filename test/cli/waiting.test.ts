import { expect, test } from "bun:test";
import type { EventRow } from "../../src/cli/events/api.ts";
import { type Holds, readHolds, waitWords } from "../../src/cli/events/waiting.ts";

const now = Date.parse("2026-03-01T12:00:00.000Z");
const url = "https://example.com/hook";
const due = (at: string | null, more: Partial<EventRow> = {}) =>
  ({ targetWebhook: url, nextAttemptAt: at, ...more }) as EventRow;
const free: Holds = { isServerPaused: false, isAccountSuspended: false, pausedWebhooks: ["https://example.com/other"] };

test.each<[what: string, record: EventRow, holds: Partial<Holds>, words: string]>([
  ["is due later", due("2026-03-01T12:00:05.000Z"), {}, "next attempt 2026-03-01T12:00:05.000Z"],
  ["is due", due("2026-03-01T12:00:00.000Z"), {}, "under way"],
  ["may still time out", due("2026-03-01T11:59:45.000Z"), {}, "under way"],
  [
    "has long been due",
    due("2026-03-01T11:59:44.999Z"),
    {},
    "waits for its turn since 2026-03-01T11:59:44.999Z: earlier deliveries are unanswered, or a rate limit applies",
  ],
  ["is held back", due(null, { heldBack: true }), {}, "waits for an earlier event with the same ordering key"],
  [
    "is held back by one that is known",
    due(null, { heldBack: true, heldBackBy: "evt_1" }),
    {},
    "waits for evt_1 with the same ordering key",
  ],
  ["has a paused webhook", due("2026-03-01T11:00:00.000Z"), { pausedWebhooks: [url] }, "waits: the webhook is paused"],
  ["is paused", due("2026-03-01T11:00:00.000Z"), { isServerPaused: true }, "waits: the operator has paused deliveries"],
  [
    "is of a suspended account",
    due("2026-03-01T13:00:00.000Z"),
    { isAccountSuspended: true },
    "waits: the operator has suspended the account",
  ],
])("a delivery that %s says so", (_, record, holds, words) => {
  expect(waitWords(record, { ...free, ...holds }, now)).toBe(words);
});

test.each<[string, object, boolean]>([
  ["by the operator", { suspended_by: ["operator"] }, true],
  ["for payment alone", { suspended_by: ["payment"] }, false],
  ["on a server of the release before, which does not say by whom", {}, false],
])("whether an account holds its deliveries that is suspended %s: %p", async (_, me, isAccountSuspended) => {
  const answers: Readonly<Record<string, unknown>> = { "/v1/about": { paused: [] }, "/v1/tenants/me": me };
  const call = (_method: string, path: string) =>
    Promise.resolve({ status: 200, json: answers[path] ?? [], text: "", etag: null, serverTime: null });
  expect(await readHolds({ call, url: "http://localhost" } as never)).toMatchObject({ isAccountSuspended });
});
