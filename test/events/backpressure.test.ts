import { expect, test } from "bun:test";
import { type Attempted, createOwnTimes } from "../../src/delivery/own-times.ts";
import { createBackpressure } from "../../src/events/backpressure.ts";
import { nextEventSeq } from "../../src/lib/id.ts";
import { createFakeClock } from "../support/fake-clock.ts";

/** So late, attempts close acceptance: it is narrowed by half, each time when those have been answered that it let through. */
const veryLateMs = 140;
const untilClosedMs = 1_280;

const noneWait = () => 0;

function setUp() {
  const clock = createFakeClock();
  let waitingForPlace = 0;
  const backpressure = createBackpressure(clock, () => waitingForPlace);
  const tell = createOwnTimes(clock, backpressure.heed);
  let accepted = 0;
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

  async function acceptOne(): Promise<void> {
    const begun = backpressure.begin(accepted, 1);
    if (begun !== null) await begun;
    accepted += 1;
    await Promise.resolve();
    backpressure.end(1);
  }

  return {
    clock,
    turn,
    accepted: () => accepted,
    /** So many fresh deliveries could go at once, but for a place. */
    letWait(count: number) {
      waitingForPlace = count;
    },
    /** An event of an account of its own; its acceptance takes no time. */
    accept: () => void acceptOne(),
    /** So many attempts a millisecond are answered, each of which took so long on our side. */
    attempts(count: number, ownMs: number, forMs: number, of: Partial<Attempted> = {}) {
      for (let ms = 0; ms < forMs; ms++) {
        clock.advance(1);
        const attempted = { eventSeq: nextEventSeq(0, clock.now()), attempts: 0, replayKey: null, ...of };
        for (let i = 0; i < count; i++) tell(attempted, ownMs);
      }
    },
  };
}

test("events are accepted at once while attempts are prompt", async () => {
  const { accept, accepted, attempts, turn } = setUp();
  attempts(10, 5, 1_000);
  accept();
  await turn();
  expect(accepted()).toBe(1);
});

test("who posts a single event does not wait for the batch of another account", () => {
  const backpressure = createBackpressure(createFakeClock(), noneWait);
  expect(backpressure.begin(1, 1_000)).toBeNull();
  expect(backpressure.begin(2, 1)).toBeNull();
});

test("of small batches no more pass at a time than their events have room for", () => {
  const backpressure = createBackpressure(createFakeClock(), noneWait);
  const atOnce = Array.from({ length: 7 }, (_, account) => backpressure.begin(account, 40) === null);
  expect(atOnce).toEqual([true, true, true, true, true, true, false]);
});

test("none is accepted while many attempts are late by us, and all are when those are prompt again", async () => {
  const { accept, accepted, attempts, turn } = setUp();
  attempts(10, veryLateMs, untilClosedMs);
  accept();
  accept();
  await turn();
  expect(accepted()).toBe(0);
  attempts(10, 2, 40);
  await turn();
  expect(accepted()).toBe(2);
});

test("prompt attempts behind which many deliveries wait for a place close acceptance as well, until those have gone", async () => {
  const { accept, accepted, attempts, letWait, turn } = setUp();
  letWait(10 * veryLateMs);
  attempts(10, 40, 380);
  accept();
  await turn();
  expect(accepted()).toBe(0);
  letWait(0);
  attempts(10, 2, 40);
  await turn();
  expect(accepted()).toBe(1);
});

test("as many hold up nobody where they are gone in a moment", async () => {
  const { accept, accepted, attempts, letWait, turn } = setUp();
  letWait(10 * veryLateMs);
  attempts(100, 40, untilClosedMs);
  accept();
  await turn();
  expect(accepted()).toBe(1);
});

test("who waits for places that receivers hold, as when a thousand go down at once, holds up nobody", async () => {
  const { accept, accepted, attempts, letWait, turn } = setUp();
  letWait(8_000);
  attempts(10, 2, untilClosedMs);
  accept();
  await turn();
  expect(accepted()).toBe(1);
});

test.each([
  ["of a replay", { replayKey: 7 }],
  ["made once more", { attempts: 1 }],
  ["of events from long ago", { eventSeq: 1 }],
])("attempts %s hold up nobody, however late they are by us", async (_, of) => {
  const { accept, accepted, attempts, turn } = setUp();
  attempts(10, veryLateMs, 1_000, of);
  accept();
  await turn();
  expect(accepted()).toBe(1);
});

test("few attempts that are late hold up nobody: the machine does other things", async () => {
  const { accept, accepted, attempts, turn } = setUp();
  attempts(1, 15.9, 1_000);
  accept();
  await turn();
  expect(accepted()).toBe(1);
});

test("while attempts stay late, some events are accepted all the same", async () => {
  const { accept, accepted, attempts, turn } = setUp();
  attempts(10, veryLateMs, untilClosedMs);
  accept();
  attempts(10, veryLateMs, 200);
  await turn();
  expect(accepted()).toBe(1);
});

test("while attempts are late, but not very, events are accepted one at a time", async () => {
  const { accept, accepted, attempts, turn } = setUp();
  attempts(10, 100, 2_000);
  for (let i = 0; i < 10; i++) accept();
  expect(accepted()).toBe(1);
  await turn();
  expect(accepted()).toBe(10);
});

test("when no attempt is answered any more, events are accepted again after a tenth of a second", async () => {
  const { accept, accepted, attempts, clock, turn } = setUp();
  attempts(10, veryLateMs, untilClosedMs);
  accept();
  await turn();
  expect(accepted()).toBe(0);
  clock.advance(100);
  await turn();
  expect(accepted()).toBe(1);
});
