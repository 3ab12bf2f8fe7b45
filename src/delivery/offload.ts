import type { DueDelivery } from "../domain/delivery.ts";
import type { Clock } from "../lib/clock.ts";
import type { Interruption } from "../lib/interruption.ts";
import type { Outcome } from "./network/transport.ts";
import type { Sender, SendOrder } from "./sender.ts";

export interface OffloadDeps {
  /** On this thread. */
  here: Sender;
  /** On another one. */
  elsewhere: Sender & {
    /** Gets ready for what will be sent there. */
    start(): void;
  };
  clock: Pick<Clock, "monotonicMs">;
  /** How long this thread has been busy so far, in ms; null: the system does not tell. */
  busyMs(): number | null;
  /** Called for each answered attempt that was made here with the time it took apart from its receiver's, in ms. */
  onOwnTime(delivery: DueDelivery, ownMs: number): void;
}

/**
 * How many are made here in one turn of the event loop, 50 to 90 µs each; the rest goes elsewhere, so that a batch of a thousand
 * events does not hold up everything else.
 */
const mostInOneTurn = 16;

interface Order {
  readonly order: SendOrder;
  readonly signal: Interruption | undefined;
  readonly orderedAtMs: number;
  resolve(outcome: Promise<Outcome>): void;
}

/**
 * Sends what is fresh from this thread while it has time to spare, and everything else from another one. Handing an attempt over
 * takes two messages and wakes two threads: at 200 events a second it costs a quarter less from here. Near full load, signing and
 * sending here would hold up everyone who waits for a 202; so would a thousand silent receivers that time out together, and
 * whatever an unknown one answers.
 */
export function createOffload({ here, elsewhere, clock, busyMs, onOwnTime }: OffloadDeps): Sender {
  const load = createThreadLoad(clock, busyMs);
  let due: Order[] = [];
  let isReady = false;

  /** Runs after this turn's 202s have gone out. */
  function flush(): void {
    const orders = due;
    due = [];
    if (!isReady) elsewhere.start();
    isReady = true;
    orders.forEach((one, i) => {
      one.resolve(i < mostInOneTurn ? sendHere(one) : elsewhere.send(one.order, one.signal));
    });
  }

  async function sendHere({ order, signal, orderedAtMs }: Order): Promise<Outcome> {
    const outcome = await here.send(order, signal);
    if (outcome.kind === "responded") {
      onOwnTime(order.delivery, clock.monotonicMs() - orderedAtMs - outcome.durationMs);
    }
    return outcome;
  }

  return {
    send(order, signal) {
      if (!order.isFresh || load.isHigh()) return elsewhere.send(order, signal);
      return new Promise((resolve) => {
        due.push({ order, signal, orderedAtMs: clock.monotonicMs(), resolve });
        if (due.length === 1) setImmediate(flush);
      });
    },
    close() {
      here.close();
      elsewhere.close();
    },
  };
}

/**
 * The load of a thread is high when it is busy for more than the first share of its time, and low again below the second. Sending
 * elsewhere takes up to 0.27 of it away, the more the higher the rate: with less between the two it would go back and forth.
 */
const highShare = 0.8;
const lowShare = 0.5;

/**
 * How long to look before sending elsewhere, and before sending here again. Going back is not urgent, and each change has to open
 * connections that the other thread had open.
 */
const highLookMs = 250;
const lowLookMs = 5_000;

/** Looks when it is asked, so that a server at rest need not wake up for it; the time since the last look then counts as well. */
function createThreadLoad({ monotonicMs }: Pick<Clock, "monotonicMs">, busyMs: () => number | null) {
  let isHigh = false;
  let lookedAtMs = monotonicMs();
  let busyBeforeMs = busyMs();

  function look(elapsedMs: number): void {
    const busyNowMs = busyMs();
    const limit = isHigh ? lowShare : highShare;
    isHigh = busyNowMs === null || busyBeforeMs === null || (busyNowMs - busyBeforeMs) / elapsedMs > limit;
    lookedAtMs += elapsedMs;
    busyBeforeMs = busyNowMs;
  }

  return {
    isHigh(): boolean {
      const elapsedMs = monotonicMs() - lookedAtMs;
      if (elapsedMs >= (isHigh ? lowLookMs : highLookMs)) look(elapsedMs);
      return isHigh;
    },
  };
}
