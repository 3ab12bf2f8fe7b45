import { expect, test } from "bun:test";
import { unlessUnderWay } from "../../../web/parts/under-way.ts";

test("what is asked for twice is done once, and again when it is over, even if it failed", async () => {
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let runs = 0;
  const run = () => gates[runs++]?.promise ?? Promise.resolve();

  const first = unlessUnderWay("evt_1", run);
  await unlessUnderWay("evt_1", run);
  expect(runs).toBe(1);
  gates[0]?.reject(new Error("busy"));
  expect(first).rejects.toThrow("busy");
  await first.catch(() => {});

  const second = unlessUnderWay("evt_1", run);
  expect(runs).toBe(2);
  gates[1]?.resolve();
  await second;
});

test("what is asked for something else does not wait", async () => {
  const gate = Promise.withResolvers<void>();
  const asked: string[] = [];
  const first = unlessUnderWay("evt_1", () => gate.promise);
  await unlessUnderWay("evt_2", async () => void asked.push("evt_2"));
  expect(asked).toEqual(["evt_2"]);
  gate.resolve();
  await first;
});
