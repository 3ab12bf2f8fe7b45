import { expect, test } from "bun:test";
import { createReport } from "../../src/cli/listen/report.ts";
import { createScriptedIo } from "../support/scripted-io.ts";

test("nothing is printed or counted after the closing line, whatever still ends", () => {
  const { io, out } = createScriptedIo();
  const report = createReport({
    io,
    now: () => 0,
    linkTo: (eventId) => `http://localhost:8080/events/${eventId}`,
    forwardTo: new URL("http://localhost:3000/"),
    kinds: new Set(["accepted"]),
    json: false,
  });
  const item = { kind: "accepted", eventId: "evt_1", webhook: null, atMs: 0 } as const;
  const forwarded = { item, eventType: null, status: 204, error: null, durationMs: 1, attempt: 1, retryInMs: null };
  report.forwarded(forwarded);
  expect(report.close()).toBe("1 forwarded: 1 answered with 2xx.");
  report.forwarded(forwarded);
  expect(out).toHaveLength(1);
  expect(report.close()).toBe("1 forwarded: 1 answered with 2xx.");
});
