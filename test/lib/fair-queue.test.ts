import { describe, expect, test } from "bun:test";
import { createFairQueue, type FairQueue, QueueFull } from "../../src/lib/fair-queue.ts";

/** Tasks that end when a test says so, in the order in which they were started. */
function tasksOf(queue: FairQueue) {
  const started: string[] = [];
  const refused: string[] = [];
  const ends: (() => void)[] = [];
  return {
    started,
    refused,
    /** @param name of a task; its first word is the first key, and so on */
    add: (...names: string[]) => {
      for (const name of names) {
        const task = () => {
          started.push(name);
          return new Promise<void>((resolve) => ends.push(resolve));
        };
        queue.run(name.split(" "), task).catch((error) => {
          if (!(error instanceof QueueFull)) throw error;
          refused.push(name);
        });
      }
    },
    /** Ends so many tasks, one after the other. */
    async end(count = 1) {
      await new Promise(setImmediate);
      for (let n = 0; n < count; n++) {
        ends.shift()?.();
        await new Promise(setImmediate);
      }
    },
  };
}

const times = (count: number, name: string) => Array.from({ length: count }, () => name);

describe("a fair queue", () => {
  test("runs so many at a time, those of one key in the order in which they came", async () => {
    const queue = createFairQueue({ slots: 2, maxWaiting: 10 });
    const { add, end, started } = tasksOf(queue);
    add("a 1", "a 2", "a 3", "a 4");
    await end(0);
    expect(started).toEqual(["a 1", "a 2"]);
    await end(2);
    expect(started).toEqual(["a 1", "a 2", "a 3", "a 4"]);
    expect(queue.isIdle).toBe(false);
    await end(2);
    expect(queue.isIdle).toBe(true);
  });

  test("lets who brings one task go before who brings many", async () => {
    const { add, end, started } = tasksOf(createFairQueue({ slots: 1, maxWaiting: 100 }));
    add(...times(50, "a"), "b", "c");
    await end(3);
    expect(started).toEqual(["a", "b", "c", "a"]);
  });

  test("gives two who always want something the same", async () => {
    const { add, end, started } = tasksOf(createFairQueue({ slots: 1, maxWaiting: 100 }));
    add(...times(40, "a"), ...times(40, "b"));
    await end(40);
    expect(Math.abs(started.filter((name) => name === "a").length - 20)).toBeLessThanOrEqual(2);
  });

  test("knows a flood by any of its keys: one account from many networks, many accounts from one", async () => {
    const { add, end, started } = tasksOf(createFairQueue({ slots: 1, maxWaiting: 100 }));
    add(...Array.from({ length: 20 }, (_, n) => `flooder net${n}`));
    add(...Array.from({ length: 20 }, (_, n) => `account${n} flooded`));
    add("ada home");
    await end(3);
    expect(started.indexOf("ada home")).toBeLessThanOrEqual(3);
  });

  test("does not take somebody for a flood who shares a network with one address of it", async () => {
    const { add, end, started } = tasksOf(createFairQueue({ slots: 1, maxWaiting: 100 }));
    add(...Array.from({ length: 50 }, (_, n) => `flooder net${n}`), "ada net40");
    await end(3);
    expect(started).toContain("ada net40");
  });

  test("lets nobody starve behind those who come for the first time, however many they are", async () => {
    const { add, end, started } = tasksOf(createFairQueue({ slots: 1, maxWaiting: 20 }));
    add("first", "ada 1", "ada 2", "ada 3");
    for (let n = 0; n < 100; n++) {
      add(`new${n}`);
      await end();
    }
    expect(started).toContain("ada 3");
  });

  test("refuses those who ask for most when too many wait, and makes room for those who do not", async () => {
    const { add, end, started, refused } = tasksOf(createFairQueue({ slots: 1, maxWaiting: 3 }));
    add("a a0", "a a1", "a a2", "a a3", "a a4");
    await end(0);
    expect(refused).toEqual(["a a4"]);
    add("b b0", "c c0");
    await end(0);
    expect(refused).toEqual(["a a4", "a a3", "a a2"]);
    await end(3);
    expect(started).toEqual(["a a0", "b b0", "c c0", "a a1"]);
    add("d d0", "e e0", "f f0", "g g0");
    await end(0);
    expect(refused).toEqual(["a a4", "a a3", "a a2", "g g0"]);
  });

  test("forgets who asked for much as soon as nobody waits", async () => {
    const queue = createFairQueue({ slots: 1, maxWaiting: 100 });
    const { add, end, started } = tasksOf(queue);
    add(...times(10, "a"));
    await end(10);
    expect(queue.isIdle).toBe(true);
    started.length = 0;
    add("b", "a", "c");
    await end(2);
    expect(started).toEqual(["b", "a", "c"]);
  });

  test("a task that fails frees its slot", async () => {
    const queue = createFairQueue({ slots: 1, maxWaiting: 1 });
    await expect(queue.run(["a"], () => Promise.reject(new Error("failed")))).rejects.toThrow("failed");
    expect(await queue.run([], () => Promise.resolve("next"))).toBe("next");
  });
});
