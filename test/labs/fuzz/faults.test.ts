import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { deliveryTimeoutMs } from "../../../src/delivery/network/transport.ts";
import { type Clock, systemClock } from "../../../src/lib/clock.ts";
import { createFastClock } from "../../support/fast-clock.ts";
import { reportFuzz } from "../../support/fuzz.ts";
import { createStoreFaults } from "../../support/store-faults.ts";
import { startTestApp } from "../../support/test-app.ts";
import { manageAccount, type Story, sendEvents, useInbox } from "./faults/stories.ts";
import { startWitness, type Witness } from "./faults/witness.ts";

/**
 * Every call to the store fails once: a story is told again and again, and each time another one of its calls, those in
 * the background too, is `unavailable`. The client repeats what was answered 503, and in the end everything must be as if
 * nothing had failed.
 */

// Pauses after a failure are seconds long. An attempt keeps its real time, or a busy machine would use it up.
const fast = createFastClock(10);
const impatientClock: Clock = {
  ...fast,
  after: (delayMs, callback) => (delayMs === deliveryTimeoutMs ? systemClock : fast).after(delayMs, callback),
};

let witness: Witness;
beforeAll(() => {
  witness = startWitness();
});
afterAll(() => witness.stop());

/** A server for one story, which it may be told again and again. */
async function startTeller(story: Story) {
  const faults = createStoreFaults();
  const server = await startTestApp({
    clock: impatientClock,
    wrapStore: faults.wrap,
    env: { POSTRIDER_RETRY_SCHEDULE: "20ms,20ms" },
  });

  /** Tells the story while the nth call of a verb fails. */
  async function tell(verb: string, nth: number) {
    const prepared = await story.prepare({ server, witness });
    faults.arm(verb, nth);
    try {
      const end = await prepared.tell();
      const result = faults.disarm();
      await end.check();
      return result;
    } catch (error) {
      faults.disarm();
      const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
      throw new Error(`With ${verb} failing for the ${nth}. time: ${what}`);
    }
  }
  return { tell, stop: server.stop };
}

describe("every call to the store fails once", () => {
  // Much of a story is waiting.
  test.concurrent.each([
    ["an account from its creation to its deletion", manageAccount],
    ["events from ingestion over replays to a removed webhook", sendEvents],
    ["an inbox that is used, and goes with its account", useInbox],
  ] as const)(
    "in the story of %s",
    async (what, story) => {
      const { tell, stop } = await startTeller(story);
      const { calls } = await tell("none", 0);
      // What fails has to be all that a story calls, or the test would prove less than it says.
      expect([...calls.keys()]).toEqual(expect.arrayContaining([...story.verbs]));
      let failed = 0;
      for (const [verb, count] of calls) {
        for (let nth = 1; nth <= count; nth += 1) if ((await tell(verb, nth)).failed) failed += 1;
      }
      await stop();
      const inAll = [...calls.values()].reduce((sum, count) => sum + count, 0);
      reportFuzz(`${what}: ${failed} of ${inAll} calls to ${calls.size} verbs failed, each in a telling of its own`);
      // Some calls of the background come now and not then.
      expect(failed).toBeGreaterThan(0.8 * inAll);
    },
    300_000,
  );
});
