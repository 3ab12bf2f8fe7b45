import { expect, test } from "bun:test";
import { createBookCloser } from "../../src/billing/book-closer.ts";
import { unavailable } from "../../src/domain/errors.ts";
import { createLog } from "../../src/lib/log.ts";
import { createFakeClock } from "../support/fake-clock.ts";

test.each<[string, Error, string]>([
  ["as the store is away", unavailable("The database does not answer.", "storage_unavailable"), "warn"],
  ["by a defect", new Error("x is undefined"), "error"],
])("closing the books, interrupted %s, is tried again: %p is logged as %p", async (_, refusal, level) => {
  const clock = createFakeClock();
  const lines: Record<string, unknown>[] = [];
  let isAway = true;
  const closer = createBookCloser({
    store: {
      accountsToClose: async () => [],
      books: async () => Promise.reject(new Error("There is nobody.")),
      async cardForgotten() {},
      async closeBooks() {},
    },
    jobs: {
      async isHeld() {
        if (isAway) throw refusal;
        return false;
      },
      wake() {},
    },
    clock,
    log: createLog({
      ...{ level: "warn", format: "json", now: clock.now },
      out: (line) => void lines.push(JSON.parse(line)),
    }),
  });
  closer.start();
  while (lines.length === 0) await new Promise<void>((resolve) => setImmediate(resolve));
  expect(lines).toMatchObject([{ level, event: "billing.failed", error: refusal.message }]);
  isAway = false;
  clock.advance(60_000);
  await closer.whenIdle();
  expect(lines).toHaveLength(1);
  await closer.stop();
});
