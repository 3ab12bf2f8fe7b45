import { describe, expect, test } from "bun:test";
import { createPauses, type Pausable } from "../../src/domain/pauses.ts";

function createDeps(noteFails: (what: Pausable) => boolean = () => false) {
  const done: string[] = [];
  const note = (what: Pausable) => {
    if (noteFails(what)) throw new Error("ENOSPC: no space left on device, write");
    done.push(`note ${what}`);
  };
  return { done, note, start: (what: Pausable) => void done.push(`start ${what}`) };
}

describe("a pause", () => {
  test("that ends is noted, and then what was held back starts, once", () => {
    const deps = createDeps();
    const pauses = createPauses(["deliveries", "charges"], deps);
    expect([pauses.resume("charges"), pauses.resume("charges")]).toEqual([true, false]);
    expect(deps.done).toEqual(["note charges", "start charges"]);
    expect([pauses.paused(), pauses.isPaused("charges")]).toEqual([["deliveries"], false]);
  });

  test("has ended when what was held back starts", () => {
    const seen: boolean[] = [];
    const pauses = createPauses(["charges"], { ...createDeps(), start: (what) => seen.push(pauses.isPaused(what)) });
    pauses.resume("charges");
    expect(seen).toEqual([false]);
  });

  test("whose end cannot be noted stays in effect, and ends when it can", () => {
    let isFull = true;
    const deps = createDeps(() => isFull);
    const pauses = createPauses(["deliveries"], deps);
    expect(() => pauses.resume("deliveries")).toThrow(
      expect.objectContaining({
        code: "storage_unavailable",
        message: expect.stringMatching(/\(ENOSPC.*\), so deliveries stay paused\. Try: make room/),
      }),
    );
    expect([pauses.paused(), deps.done]).toEqual([["deliveries"], []]);
    isFull = false;
    expect([pauses.resume("deliveries"), deps.done]).toEqual([true, ["note deliveries", "start deliveries"]]);
  });
});
