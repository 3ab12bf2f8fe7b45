import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Queue } from "../../src/lib/queue.ts";

const all = (queue: Queue<number>) =>
  queue.reduce<number[]>((values, value) => {
    values.push(value);
    return values;
  }, []);

describe("a queue", () => {
  test("does what an array does with push, unshift, shift and splice", () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("add" as const), value: fc.nat(50) }),
      fc.record({ kind: fc.constant("addFirst" as const), value: fc.nat(50) }),
      fc.record({ kind: fc.constant("take" as const), value: fc.constant(0) }),
      fc.record({ kind: fc.constant("remove" as const), value: fc.nat(50) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const queue = new Queue<number>();
        const model: number[] = [];
        for (const { kind, value } of steps) {
          if (kind === "add") {
            queue.add(value);
            model.push(value);
          } else if (kind === "addFirst") {
            queue.addFirst(value);
            model.unshift(value);
          } else if (kind === "take") expect(queue.take()).toBe(model.shift());
          else {
            queue.remove(value);
            if (model.includes(value)) model.splice(model.indexOf(value), 1);
          }
          expect(queue.length).toBe(model.length);
          expect(queue.first).toBe(model[0]);
        }
        expect(all(queue)).toEqual(model);
      }),
    );
  });

  test("keeps its order through thousands", () => {
    const queue = new Queue<number>();
    for (let n = 0; n < 5_000; n += 1) queue.add(n);
    for (let n = 0; n < 20_000; n += 1) {
      expect(queue.take()).toBe(n);
      queue.add(n + 5_000);
    }
    expect(queue.length).toBe(5_000);
    queue.remove(20_001);
    expect([queue.take(), queue.take(), queue.length]).toEqual([20_000, 20_002, 4_997]);
  });
});
