import { describe, expect, test } from "bun:test";
import { createKeyedLock } from "../../src/lib/keyed-lock.ts";

describe("a keyed lock", () => {
  test("runs what belongs to one key one at a time, in order", async () => {
    const lock = createKeyedLock<number>();
    const gate = Promise.withResolvers<void>();
    const seen: string[] = [];
    const first = lock.run(1, async () => {
      seen.push("first begins");
      await gate.promise;
      seen.push("first ends");
      return "one";
    });
    const second = lock.run(1, async () => void seen.push("second"));
    const other = lock.run(2, async () => void seen.push("other key"));
    await other;
    gate.resolve();
    expect(await first).toBe("one");
    await second;
    expect(seen).toEqual(["first begins", "other key", "first ends", "second"]);
  });

  test("goes on after an action that failed, and tells its caller", async () => {
    const lock = createKeyedLock<string>();
    const failing = lock.run("a", async () => {
      throw new Error("no");
    });
    const next = lock.run("a", async () => "yes");
    await expect(failing).rejects.toThrow("no");
    expect(await next).toBe("yes");
  });
});
