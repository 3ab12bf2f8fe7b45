import { expect, test } from "bun:test";
import type { Outcome } from "../../src/delivery/network/transport.ts";
import { createOffload } from "../../src/delivery/offload.ts";
import type { SendOrder } from "../../src/delivery/sender.ts";
import { dueDelivery, signerMaterial } from "../support/due-delivery.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const answered: Outcome = {
  kind: "responded",
  status: 204,
  retryAfter: undefined,
  head: null,
  durationMs: 4,
  body: { ended: true, received: () => new Uint8Array(0), done: Promise.resolve() },
};
const unanswered: Outcome = { kind: "no-response", cause: "timeout", durationMs: 4 };
const order: SendOrder = { delivery: dueDelivery({}), material: signerMaterial(), headers: [], now: 0, isFresh: true };

/** Two senders that note what reaches them, and a thread that is as busy as a test says. */
function setUp({ outcome = answered, tells = true } = {}) {
  const clock = createFakeClock();
  const ownTimes: number[] = [];
  const state = { busyMs: 0, starts: 0, closed: [] as string[], places: [] as string[] };
  const sender = (place: string, takesMs = 0) => ({
    async send() {
      state.places.push(place);
      clock.advance(takesMs);
      return outcome;
    },
    close: () => void state.closed.push(place),
  });
  const offload = createOffload({
    here: sender("here", 7),
    elsewhere: { ...sender("elsewhere"), start: () => void state.starts++ },
    clock,
    busyMs: () => (tells ? state.busyMs : null),
    onOwnTime: (_, ownMs) => void ownTimes.push(ownMs),
  });
  return {
    clock,
    state,
    ownTimes,
    offload,
    /** Lets time pass in which this thread is busy for a share of it. */
    pass(ms: number, share: number) {
      clock.advance(ms);
      state.busyMs += ms * share;
    },
    /** Sends so many in one turn of the event loop. @returns where each was made */
    async send(count = 1) {
      state.places.length = 0;
      await Promise.all(Array.from({ length: count }, () => offload.send(order)));
      return [...state.places];
    },
  };
}

const looked = 250;

test("an attempt is made on this thread while that has time to spare; the other one is started once, for what may come", async () => {
  const { send, pass, state } = setUp();
  expect(await send()).toEqual(["here"]);
  pass(looked, 0.5);
  expect(await send()).toEqual(["here"]);
  expect(state.starts).toBe(1);
});

test.each([
  [0.79, "here"],
  [0.81, "elsewhere"],
  [1, "elsewhere"],
])("after a quarter of a second that is busy for %d of it, an attempt is made %s", async (share, place) => {
  const { send, pass } = setUp();
  pass(looked, share);
  expect(await send()).toEqual([place]);
});

test("less than a quarter of a second proves nothing: a server that starts is busy for a moment", async () => {
  const { send, pass } = setUp();
  pass(looked - 1, 1);
  expect(await send()).toEqual(["here"]);
});

test("a rest counts as well: a server that was idle begins on this thread", async () => {
  const { send, pass } = setUp();
  pass(60_000, 0);
  pass(100, 1);
  expect(await send()).toEqual(["here"]);
});

test.each([
  [0.49, "here"],
  [0.51, "elsewhere"],
])("it returns after five seconds that are busy for %d of them, and no sooner: %s", async (share, place) => {
  const { send, pass } = setUp();
  pass(looked, 1);
  expect(await send()).toEqual(["elsewhere"]);
  pass(4_999, share);
  expect(await send()).toEqual(["elsewhere"]);
  pass(1, share);
  expect(await send()).toEqual([place]);
});

test("of a burst, sixteen are made on this thread in one turn and the rest on the other one", async () => {
  const { send } = setUp();
  const places = await send(40);
  expect(places.filter((place) => place === "here")).toHaveLength(16);
  expect(places).toHaveLength(40);
  expect(await send(16)).toEqual(Array(16).fill("here"));
});

test("a backlog, and what goes to an unknown or silent receiver, is sent from the other thread", async () => {
  const { offload, state, send } = setUp();
  await send();
  await offload.send({ ...order, isFresh: false });
  expect(state.places).toEqual(["here", "elsewhere"]);
});

test("where the system does not tell how busy it is, everything is made on the other thread", async () => {
  const { send, pass } = setUp({ tells: false });
  pass(looked, 0);
  expect(await send()).toEqual(["elsewhere"]);
});

test.each([
  ["the wait for its turn and for its answer, without the receiver's time", answered, [3]],
  ["nothing for one without an answer", unanswered, []],
])("an attempt that is made here reports %s", async (_, outcome, expected) => {
  const { send, ownTimes } = setUp({ outcome });
  await send();
  expect(ownTimes).toEqual(expected);
});

test("closing ends both", () => {
  const { offload, state } = setUp();
  offload.close();
  expect(state.closed).toEqual(["here", "elsewhere"]);
});
