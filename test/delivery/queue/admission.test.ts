import { describe, expect, test } from "bun:test";
import {
  createAdmission,
  type Line,
  oldLimit,
  type Place,
  provenYoungLimit,
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
    fill(line: Line): Place[] {
      const places: Place[] = [];
      while (admission.hasRoom(line)) places.push(admission.enter(line));
      return places;
    },
  };
}

describe("admission", () => {
  test("webhooks that answer may have 480 young attempts", () => {
    expect(setUp().fill("fresh")).toHaveLength(provenYoungLimit);
  });

  test("a new webhook finds a place when those that answer have taken all of theirs", () => {
    const { fill } = setUp();
    fill("fresh");
    expect(fill("untried")).toHaveLength(youngLimit - provenYoungLimit);
  });

  test("webhooks that have not answered take half of the places, so the others always find one", () => {
    const { admission, fill } = setUp();
    expect(fill("silent")).toHaveLength(silentYoungLimit);
    expect(admission.hasRoom("fresh")).toBe(true);
    expect(fill("fresh")).toHaveLength(youngLimit - silentYoungLimit);
  });

  test("a new webhook finds a place when those that hang have taken all of theirs", () => {
    const { admission, fill } = setUp();
    fill("silent");
    expect(admission.hasRoom("untried")).toBe(true);
    expect(fill("untried")).toHaveLength(untriedYoungLimit - silentYoungLimit);
    expect(admission.hasRoom("fresh")).toBe(true);
  });

  test("backlogs leave places when attempts take long by us and something is new, but not fewer than what is new has", () => {
    const { admission, fill, pass } = setUp();
    const late = () => {
      for (let ms = 0; ms < 2_000; ms += 1) {
        pass(1);
        if (ms % 100 === 0) admission.leave(admission.enter("fresh"));
        admission.heed({ attempts: 1, ownMs: 130 });
      }
    };
    expect(fill("backlog")).toHaveLength(provenYoungLimit);
    late();
    const fresh = fill("fresh");
    for (const place of fresh.slice(200)) admission.leave(place);
    expect(fill("backlog")).toHaveLength(200);

    for (const place of fresh.slice(0, 200)) admission.leave(place);
    expect(admission.hasRoom("backlog")).toBe(false);
    expect(admission.hasRoom("fresh")).toBe(true);
  });

  test("an attempt that ends makes room for another", () => {
    const { admission, fill } = setUp();
    const [first] = fill("fresh");
    admission.leave(first as Place);
    expect(admission.hasRoom("fresh")).toBe(true);
    expect(admission.inFlight).toBe(provenYoungLimit - 1);
  });

  test.each<[Line, number]>([
    ["fresh", provenYoungLimit],
    ["silent", silentYoungLimit],
  ])("after a quarter of a second an attempt does not count as young any more: %s", (line, limit) => {
    const { admission, fill, pass } = setUp();
    fill(line);
    pass(249);
    expect(admission.hasRoom(line)).toBe(false);
    expect(admission.nextAgeingAt()).toBe(250);
    pass(1);
    expect(fill(line)).toHaveLength(limit);
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
    expect(fill("fresh")).toHaveLength(provenYoungLimit);
  });
});
