import { describe, expect, test } from "bun:test";
import {
  type Choice,
  defaultLabel,
  fieldsOf,
  missing,
  readChoice,
  startText,
  urlOf,
} from "../../../../web/pages/replays/choice.ts";

const choice = (given: Partial<Choice>): Choice => ({ kind: "failed", eventId: "", from: "", to: "", ...given });
const from = "2026-03-01T12:00:00.000Z";
const to = "2026-03-01T13:30:00.000Z";

describe("the choice of a replay in the URL", () => {
  test.each([
    [{}, {}],
    [{ kind: "failed" }, {}],
    [{ kind: "all" }, { kind: "all" }],
    [
      { kind: "timeline", from: "2026-03-01T12:00:00Z", to },
      { kind: "timeline", from, to },
    ],
    [
      { kind: "timeline", startTime: from, endTime: to },
      { kind: "timeline", from, to },
    ],
    [
      { kind: "single", event: "evt_1" },
      { kind: "single", eventId: "evt_1" },
    ],
    [{ event: "evt_1" }, { kind: "single", eventId: "evt_1" }],
    [{ from }, { kind: "timeline", from }],
    [{ kind: "everything", from: "yesterday" }, {}],
    [{ kind: "toString" }, {}],
  ] as const)("%o is read", (query, given) => {
    expect(readChoice(query)).toEqual(choice(given));
  });

  test.each([
    choice({}),
    choice({ kind: "all" }),
    choice({ kind: "single", eventId: "evt_1" }),
    choice({ kind: "timeline", from, to }),
  ])("%o is written so that it reads the same", (given) => {
    const query = Object.fromEntries(new URL(urlOf(given, 3), "http://localhost").searchParams);
    expect(readChoice(query)).toEqual(given);
    expect(query.page).toBe("3");
    expect(urlOf(given, 1)).not.toContain("page");
  });

  test.each([
    [choice({}), null, {}],
    [choice({ kind: "all" }), null, {}],
    [choice({ kind: "single" }), "Enter an event id.", { eventId: "" }],
    [choice({ kind: "single", eventId: " evt_1 " }), null, { eventId: "evt_1" }],
    [choice({ kind: "timeline", from }), "Choose when the range starts and ends.", { startTime: from, endTime: "" }],
    [
      choice({ kind: "timeline", from: to, to: from }),
      "The range starts after it ends.",
      { startTime: to, endTime: from },
    ],
    [choice({ kind: "timeline", from, to: from }), null, { startTime: from, endTime: from }],
  ])("%o: what is missing, and what is sent", (given, lacks, fields) => {
    expect(missing(given)).toBe(lacks);
    expect(fieldsOf(given)).toEqual(fields);
  });
});

describe("the button of a replay", () => {
  test.each([
    ["failed", 132, "Replay 132 failed events"],
    ["failed", 1, "Replay 1 failed event"],
    ["failed", 0, "Replay"],
    ["failed", null, "Replay"],
    ["timeline", 1, "Replay 1 event"],
    ["all", 1, "Replay 1 event"],
    ["all", 40, "Replay all 40 events"],
    ["single", 1, "Replay this event"],
  ] as const)("%s with %p: %s", (kind, selected, text) => {
    expect(startText(kind, selected)).toBe(text);
  });
});

describe("the label of a replay", () => {
  test("says what and when, unless it is given", () => {
    const at = new Date(2026, 2, 1, 9, 5, 7).getTime();
    expect(defaultLabel("failed", at)).toBe("failed-20260301-090507");
    expect(defaultLabel("timeline", at)).toBe("range-20260301-090507");
  });
});
