import { describe, expect, test } from "bun:test";
import {
  createAdmission,
  oldLimit,
  type Place,
  type Standing,
  unprovenYoungLimit,
  untriedYoungLimit,
  youngLimit,
} from "../../src/delivery/admission.ts";

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
  test("webhooks that answer may have 512 attempts younger than a second", () => {
    expect(setUp().fill("proven")).toHaveLength(youngLimit);
  });

  test("webhooks that have not answered take half of the places, so the others always find one", () => {
    const { admission, fill } = setUp();
    expect(fill("unproven")).toHaveLength(unprovenYoungLimit);
    expect(admission.hasRoom("proven")).toBe(true);
    expect(fill("proven")).toHaveLength(youngLimit - unprovenYoungLimit);
  });

  test("a new webhook finds a place when those that hang have taken all of theirs", () => {
    const { admission, fill } = setUp();
    fill("unproven");
    expect(admission.hasRoom("untried")).toBe(true);
    expect(fill("untried")).toHaveLength(untriedYoungLimit - unprovenYoungLimit);
    expect(admission.hasRoom("proven")).toBe(true);
  });

  test("an attempt that ends makes room for another", () => {
    const { admission, fill } = setUp();
    const [first] = fill("proven");
    admission.leave(first as Place);
    expect(admission.hasRoom("proven")).toBe(true);
    expect(admission.inFlight).toBe(youngLimit - 1);
  });

  test("after a second an attempt does not count as young any more", () => {
    const { admission, fill, pass } = setUp();
    fill("unproven");
    pass(999);
    expect(admission.hasRoom("unproven")).toBe(false);
    expect(admission.nextAgeingAt()).toBe(1000);
    pass(1);
    expect(fill("unproven")).toHaveLength(unprovenYoungLimit);
  });

  test("no more than 4,096 attempts are older than a second", () => {
    const { admission, fill, pass } = setUp();
    const all: Place[] = [];
    for (let second = 0; second < 30; second += 1) {
      all.push(...fill("unproven"));
      pass(1000);
    }
    expect(all).toHaveLength(oldLimit + unprovenYoungLimit);
    expect(admission.nextAgeingAt()).toBeNull();
    for (const place of all) admission.leave(place);
    expect(admission.inFlight).toBe(0);
    expect(fill("proven")).toHaveLength(youngLimit);
  });
});
