import { expect, test } from "bun:test";
import { createTurnstile } from "../../src/lib/turnstile.ts";

function setUp(most: number) {
  const turnstile = createTurnstile<string>(most);
  const passed: string[] = [];
  async function pass(key: string, weight = 1) {
    const turn = turnstile.pass(key, weight);
    if (turn !== null) await turn;
    passed.push(key);
  }
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
  return { ...turnstile, passed, pass, turn };
}

test("so much passes at a time, and what leaves makes room", async () => {
  const { pass, leave, passed, turn } = setUp(3);
  for (const weight of [2, 1, 1, 1]) void pass("a", weight);
  expect(passed).toHaveLength(2);
  leave(2);
  await turn();
  expect(passed).toHaveLength(4);
});

test("keys take turns, however many of one wait", async () => {
  const { pass, leave, passed, turn } = setUp(1);
  for (const key of ["a", "a", "a", "a", "b", "c"]) void pass(key);
  for (let i = 0; i < 5; i++) {
    leave(1);
    await turn();
  }
  expect(passed).toEqual(["a", "a", "b", "c", "a", "a"]);
});

test("what is too much for it passes alone", async () => {
  const { pass, leave, passed, turn } = setUp(10);
  void pass("small");
  void pass("large", 1_000);
  void pass("late");
  expect(passed).toEqual(["small"]);
  leave(1);
  await turn();
  expect(passed).toEqual(["small", "large"]);
  leave(1_000);
  await turn();
  expect(passed).toEqual(["small", "large", "late"]);
});

test("closed, it lets nothing pass, and everybody in turn when it opens", async () => {
  const { pass, widen, passed, turn } = setUp(1);
  widen(0);
  void pass("a");
  void pass("b");
  await turn();
  expect(passed).toEqual([]);
  widen(2);
  await turn();
  expect(passed).toEqual(["a", "b"]);
});
