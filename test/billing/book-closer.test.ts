import { expect, test } from "bun:test";
import { createBookCloser } from "../../src/billing/book-closer.ts";
import { unavailable } from "../../src/domain/errors.ts";
import { createLog, silentLog } from "../../src/lib/log.ts";
import type { Books } from "../../src/store/billing.ts";
import { storageDamaged } from "../../src/store/unless-damaged.ts";
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

test("accounts that cannot be read keep no other from being closed, and are tried again after a minute", async () => {
  const clock = createFakeClock();
  const damaged = new Set(Array.from({ length: 150 }, (_, n) => n));
  const open = new Set([...damaged, 150, 151]);
  let reads = 0;
  const closer = createBookCloser({
    store: {
      accountsToClose: async (limit) => [...open].slice(0, limit),
      async books(key) {
        reads += 1;
        if (damaged.has(key)) throw storageDamaged();
        return { card: null, cardsToForget: [] } as unknown as Books;
      },
      async cardForgotten() {},
      closeBooks: async (key) => void open.delete(key),
    },
    jobs: { isHeld: async () => false, wake() {} },
    clock,
    log: silentLog,
  });
  closer.start();
  /** Lets pauses after failures pass, until it waits for longer than those. */
  async function settle() {
    for (let quiet = 0; quiet < 20; quiet += 1) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (clock.nextTimerMs !== 1_000) continue;
      clock.advance(1_000);
      quiet = 0;
    }
  }
  await settle();
  expect([open.size, reads]).toEqual([150, 152]);
  damaged.clear();
  clock.advance(30_000);
  await settle();
  expect(open.size).toBe(150);
  clock.advance(30_000);
  await settle();
  expect(open.size).toBe(0);
  await closer.stop();
});
