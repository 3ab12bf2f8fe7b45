import { expect, test } from "bun:test";
import { createOutages } from "../../src/cli/selftest/crash/outages.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const line = (event: string, error: string) => JSON.stringify({ level: "error", event, error });
const away = "The database does not answer at the moment; retry later.";
const crowded = "The database has no connection free at the moment; retry later.";
const lost = "The connection to the database ended before it answered, so it is not known whether it wrote";
const lostRequest = line("request.failed", `OutcomeUnknown: ${lost}\n    at attempt`);

test.each<[what: string, line: string, isExpected: boolean]>([
  ["work that goes on by itself", line("replay.not_queued", away), true],
  ["a database that is back, with all its connections taken", line("delivery.load_failed", crowded), true],
  ["a request of which nobody knows whether it was written", lostRequest, true],
  ["a request that failed for another reason", line("request.failed", "TypeError: x is undefined"), false],
  ["work that broke for another reason", line("replay.not_queued", "TypeError: x is undefined"), false],
  ["anything else", line("billing.failed", away), false],
])("while the database is away a server may tell of %s: %p", (_, told, isExpected) => {
  const clock = createFakeClock();
  const outages = createOutages(clock);
  expect(outages.isExpected(told)).toBe(false);
  const end = outages.begin();
  expect(outages.isExpected(told)).toBe(isExpected);
  end();
  clock.advance(30_000);
  expect(outages.isExpected(told)).toBe(isExpected);
  clock.advance(1);
  expect(outages.isExpected(told)).toBe(false);
});
