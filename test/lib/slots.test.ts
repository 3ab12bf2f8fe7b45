import { describe, expect, test } from "bun:test";
import { NumberedValues, Slots } from "../../src/lib/slots.ts";

describe("slots", () => {
  test("give each value a number of its own, also where one was taken out before", () => {
    const slots = new Slots<string>();
    const first = slots.add("first");
    const second = slots.add("second");
    expect(slots.delete(first)).toBe(true);
    const third = slots.add("third");
    expect(new Set([first, second, third]).size).toBe(3);
    expect([first, second, third].map((number) => slots.get(number))).toEqual([undefined, "second", "third"]);
  });

  test("take out by its number what is there, and nothing that came to its place since", () => {
    const slots = new Slots<string>();
    const first = slots.add("first");
    slots.delete(first);
    const second = slots.add("second");
    expect(slots.delete(first)).toBe(false);
    expect(slots.get(second)).toBe("second");
    expect([slots.get(0), slots.delete(0)]).toEqual([undefined, false]);
  });

  test("hold as many places as there were values at a time", () => {
    const slots = new Slots<number>();
    const places = new Set<number>();
    for (let i = 0; i < 10_000; i++) {
      const numbers = [slots.add(i), slots.add(i)];
      for (const number of numbers) places.add(number % 2 ** 20);
      for (const number of numbers) slots.delete(number);
    }
    expect(places.size).toBe(2);
  });

  test("are emptied at once, and go on", () => {
    const slots = new Slots<string>();
    const numbers = ["a", "b", "c"].map((value) => slots.add(value));
    slots.delete(numbers[1] ?? 0);
    expect(slots.takeAll()).toEqual(["a", "c"]);
    expect(slots.takeAll()).toEqual([]);
    expect(slots.get(slots.add("d"))).toBe("d");
  });

  test("have a mirror elsewhere, which takes any of their numbers in any order", () => {
    const slots = new Slots<string>();
    const numbers = ["a", "b", "c"].map((value) => slots.add(value));
    const mirror = new NumberedValues<string>();
    for (const number of numbers.toReversed()) mirror.put(number, slots.get(number) ?? "");
    expect(numbers.map((number) => mirror.get(number))).toEqual(["a", "b", "c"]);
    expect(mirror.takeAll()).toEqual(["a", "b", "c"]);
  });
});
