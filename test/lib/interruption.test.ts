import { describe, expect, test } from "bun:test";
import { Interrupter } from "../../src/lib/interruption.ts";

describe("an interrupter", () => {
  test("tells all who listen, once", () => {
    const interrupter = new Interrupter();
    const told: string[] = [];
    for (const name of ["a", "b"]) interrupter.addEventListener("abort", { handleEvent: () => void told.push(name) });
    expect(interrupter.aborted).toBe(false);
    interrupter.abort();
    interrupter.abort();
    expect(told).toEqual(["a", "b"]);
    expect(interrupter.aborted).toBe(true);
  });

  test("does not tell who has left, be it while others are told", () => {
    const interrupter = new Interrupter();
    const told: string[] = [];
    const late = { handleEvent: () => void told.push("late") };
    const early = { handleEvent: () => void told.push("early") };
    const leaving = { handleEvent: () => interrupter.removeEventListener("abort", late) };
    for (const listener of [early, leaving, late]) interrupter.addEventListener("abort", listener);
    interrupter.removeEventListener("abort", early);
    interrupter.abort();
    expect(told).toEqual([]);
  });
});
