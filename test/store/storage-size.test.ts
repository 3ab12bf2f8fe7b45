import { expect, test } from "bun:test";
import {
  type MeasuredRecord,
  measuredAtOnce,
  measureStorage,
  sampleSize,
  stepOf,
} from "../../src/store/storage-size.ts";

const sizes = { event: 30, record: 100, attempt: 50 };

/** Over records whose events have one each, or two, and as many bytes as a record's number says. */
function measure(count: number, bytesOf: (n: number) => number, recordsOfEvent = 1) {
  const reads: number[] = [];
  const slice = async (afterSeq: number, step: number): Promise<MeasuredRecord[]> => {
    const found: MeasuredRecord[] = [];
    for (let key = 1; key <= count && found.length < measuredAtOnce; key++) {
      const eventSeq = Math.ceil(key / recordsOfEvent);
      if (eventSeq <= afterSeq || key % step !== 0) continue;
      const of = {
        records: recordsOfEvent,
        eventBytes: bytesOf(eventSeq),
        recordBytes: 0,
        attempts: 1,
        attemptBytes: 10,
      };
      found.push({ eventSeq, ...of });
    }
    reads.push(found.length);
    return found;
  };
  return { bytes: measureStorage(count, sizes, slice), reads };
}

test("few events are measured one by one", async () => {
  expect(await measure(1_000, (n) => n).bytes).toBe(1_000 * (30 + 100 + 50 + 10) + (1_000 * 1_001) / 2);
});

test("no record of an event is left out where a slice ends within it", async () => {
  const events = 401;
  expect(await measure(3 * events, () => 100, 3).bytes).toBe(events * (30 + 100 + 50 + 10) + 3 * events * 100);
});

test("of many a sample stands for all, within 5 %", async () => {
  const count = 40 * sampleSize;
  const size = (n: number) => 200 + ((n * 7_919) % 5_000);
  const whole = Array.from({ length: count }, (_, n) => 190 + size(n + 1)).reduce((sum, one) => sum + one, 0);
  const { bytes, reads } = measure(count, size);
  expect(Math.abs((await bytes) / whole - 1)).toBeLessThan(0.05);
  const measured = reads.reduce((sum, one) => sum + one, 0);
  expect(measured).toBeGreaterThan(sampleSize / 2);
  expect(measured).toBeLessThan(2 * sampleSize);
  expect(stepOf(count) % 2).toBe(1);
});

test("an account without events takes nothing", async () => {
  expect(await measure(0, () => 1).bytes).toBe(0);
});
