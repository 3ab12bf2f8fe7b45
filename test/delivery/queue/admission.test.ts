import { describe, expect, test } from "bun:test";
import {
  createAdmission,
  oldLimit,
  type Place,
  provenYoungLimit,
  type Standing,
  silentOldLimit,
  silentYoungLimit,
  untriedYoungLimit,
  youngLimit,
  youngMs,
} from "../../../src/delivery/queue/admission.ts";

function setUp() {
  let now = 0;
  const admission = createAdmission({ monotonicMs: () => now });
  return {
    admission,
    pass: (ms: number) => {
      now += ms;
    },
    fill(standing: Standing): Place[] {
      const places: Place[] = [];
      while (admission.hasRoom(standing)) places.push(admission.enter(standing === "proven"));
      return places;
    },
  };
}

describe("admission", () => {
  test("webhooks that answer may have 480 young attempts", () => {
    expect(setUp().fill("proven")).toHaveLength(provenYoungLimit);
  });

  test("a new webhook finds a place when those that answer have taken all of theirs", () => {
    const { fill } = setUp();
    fill("proven");
    expect(fill("untried")).toHaveLength(youngLimit - provenYoungLimit);
  });

  test("webhooks that have not answered take half of the places, so the others always find one", () => {
    const { admission, fill } = setUp();
    expect(fill("silent")).toHaveLength(silentYoungLimit);
    expect(admission.hasRoom("proven")).toBe(true);
    expect(fill("proven")).toHaveLength(youngLimit - silentYoungLimit);
  });

  test("a new webhook finds a place when those that hang have taken all of theirs", () => {
    const { admission, fill } = setUp();
    fill("silent");
    expect(admission.hasRoom("untried")).toBe(true);
    expect(fill("untried")).toHaveLength(untriedYoungLimit - silentYoungLimit);
    expect(admission.hasRoom("proven")).toBe(true);
  });

  test("an attempt that ends makes room for another", () => {
    const { admission, fill } = setUp();
    const [first] = fill("proven");
    admission.leave(first as Place);
    expect(admission.hasRoom("proven")).toBe(true);
    expect(admission.inFlight).toBe(provenYoungLimit - 1);
  });

  test.each<[Standing, number]>([
    ["proven", provenYoungLimit],
    ["silent", silentYoungLimit],
  ])("after a quarter of a second an attempt does not count as young any more: %s", (standing, limit) => {
    const { admission, fill, pass } = setUp();
    fill(standing);
    pass(249);
    expect(admission.hasRoom(standing)).toBe(false);
    expect(admission.nextAgeingAt()).toBe(250);
    pass(1);
    expect(fill(standing)).toHaveLength(limit);
    expect(admission.nextAgeingAt()).toBe(500);
  });

  test("those that hang leave a quarter of the old places to new webhooks, of which one may answer", () => {
    const { fill, pass } = setUp();
    let silent = 0;
    for (let turn = 0; turn < 30; turn += 1) {
      silent += fill("silent").length;
      pass(youngMs);
    }
    expect(silent).toBe(silentOldLimit);
    expect(fill("untried")).toHaveLength(untriedYoungLimit);
  });

  test("no more than 4,096 attempts are older than that", () => {
    const { admission, fill, pass } = setUp();
    const all: Place[] = [];
    for (let turn = 0; turn < 30; turn += 1) {
      all.push(...fill("untried"));
      pass(youngMs);
    }
    expect(all).toHaveLength(oldLimit + untriedYoungLimit);
    expect(admission.nextAgeingAt()).toBeNull();
    for (const place of all) admission.leave(place);
    expect(admission.inFlight).toBe(0);
    expect(fill("proven")).toHaveLength(provenYoungLimit);
  });
});
