import { afterAll, describe, expect, test } from "bun:test";
import type { FetchDelivery } from "../../src/cli/listen/fetch-delivery.ts";
import { createForwarder, type Forwarded } from "../../src/cli/listen/forward.ts";
import type { Item } from "../../src/cli/listen/source.ts";
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { startReceiver } from "../support/receiver.ts";

/** Statuses of the next answers; 204 when there are none. */
const answers: number[] = [];
const receiver = startReceiver({ answer: () => new Response(null, { status: answers.shift() ?? 204 }) });
afterAll(() => receiver.stop());

interface BeginOptions {
  /** Events as the source gives them. @default `a`, `b`, `c` … */
  names?: readonly string[];
  retries?: number;
  clock?: Clock;
}

const alphabet = (n: number) => Array.from({ length: n }, (_, i) => String.fromCharCode(97 + i));

/** A forwarder of events whose deliveries arrive from the server when the test says so. */
function begin(
  n: number,
  concurrency: number,
  { names = alphabet(n), retries = 0, clock = systemClock }: BeginOptions = {},
) {
  const fetching = new Map<string, (delivery: Awaited<ReturnType<FetchDelivery>>) => void>();
  const forwarded: Forwarded[] = [];
  const waiting = new Set<() => void>();
  const changed = () => {
    for (const look of [...waiting]) look();
  };
  const stop = new AbortController();
  const path = crypto.randomUUID();
  const forwarder = createForwarder({
    source: {
      async *items(): AsyncGenerator<Item> {
        for (const eventId of names) yield { kind: "accepted", eventId, webhook: null, atMs: 0 };
        await new Promise(() => {});
      },
    },
    fetchDelivery: (eventId) =>
      new Promise((resolve) => {
        fetching.set(eventId, resolve);
        changed();
      }),
    forwardTo: new URL(`${receiver.url}/${path}`),
    concurrency,
    retries,
    clock,
    onForwarded(each) {
      forwarded.push(each);
      changed();
    },
    signal: stop.signal,
  });
  const run = forwarder.run();
  run.catch(() => {});

  const when = (holds: () => boolean) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (!holds()) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
    });

  return {
    forwarder,
    run,
    stop,
    fetching,
    forwarded,
    whenFetching: (k: number) => when(() => fetching.size >= k),
    whenForwarded: (k: number) => when(() => forwarded.length >= k),
    /** The delivery of an event has come from the server. */
    arrive: (eventId: string) => fetching.get(eventId)?.({ headers: { "x-event": eventId }, body: "{}" }),
    got: () =>
      receiver.requests.filter((each) => each.path === `/${path}`).map(({ headers }) => headers.get("x-event")),
  };
}

describe("a forwarder", () => {
  test("posts in the order of the events, in whatever order their deliveries come", async () => {
    const { whenFetching, whenForwarded, arrive, got } = begin(3, 3);
    await whenFetching(3);
    for (const eventId of ["c", "b", "a"]) arrive(eventId);
    await whenForwarded(3);
    expect(got()).toEqual(["a", "b", "c"]);
  });

  test("has as many under way as it may, and no more", async () => {
    const { whenFetching, whenForwarded, arrive, fetching } = begin(6, 2);
    await whenFetching(2);
    await new Promise((resolve) => setImmediate(resolve));
    expect([...fetching.keys()]).toEqual(["a", "b"]);
    arrive("a");
    await whenForwarded(1);
    await whenFetching(3);
    expect([...fetching.keys()]).toEqual(["a", "b", "c"]);
  });

  test("tells up to which event all were forwarded", async () => {
    const { forwarder, whenFetching, whenForwarded, arrive } = begin(3, 3);
    expect(forwarder.forwardedThrough).toBeNull();
    await whenFetching(3);
    arrive("a");
    await whenForwarded(1);
    await new Promise((resolve) => setImmediate(resolve));
    expect(forwarder.forwardedThrough).toBe("a");
  });

  test("tells which have not been forwarded", async () => {
    const { forwarder, whenFetching, whenForwarded, arrive } = begin(3, 3);
    await whenFetching(3);
    arrive("a");
    await whenForwarded(1);
    await new Promise((resolve) => setImmediate(resolve));
    expect(forwarder.unforwarded().map(({ eventId }) => eventId)).toEqual(["b", "c"]);
  });

  test("does not go back to an event that was found late", async () => {
    const { forwarder, whenFetching, whenForwarded, arrive } = begin(3, 3, { names: ["b", "c", "a"] });
    await whenFetching(3);
    for (const eventId of ["b", "c", "a"]) arrive(eventId);
    await whenForwarded(3);
    await forwarder.whenIdle();
    expect(forwarder.forwardedThrough).toBe("c");
  });

  test("goes on when an event cannot be delivered, which no retry would change", async () => {
    const { whenFetching, whenForwarded, fetching, arrive, forwarded, got } = begin(2, 2, { retries: 1 });
    await whenFetching(2);
    fetching.get("a")?.({ undeliverable: "the event no longer exists" });
    arrive("b");
    await whenForwarded(2);
    expect(forwarded.map(({ status, error }) => status ?? error)).toEqual(["the event no longer exists", 204]);
    expect(got()).toEqual(["b"]);
  });

  test("fetches a delivery anew for each retry, and holds no other back meanwhile", async () => {
    const { clock, advance, whenSet } = createManualClock();
    const { fetching, whenFetching, whenForwarded, arrive, forwarded, got } = begin(2, 2, { retries: 1, clock });
    await whenFetching(2);
    const pausing = whenSet(1_000);
    answers.push(503);
    arrive("a");
    await whenForwarded(1);
    arrive("b");
    await whenForwarded(2);
    await pausing;
    fetching.delete("a");
    advance(1_000);
    await whenFetching(2);
    arrive("a");
    await whenForwarded(3);
    expect(forwarded.map(({ item, status, attempt, retryInMs }) => [item.eventId, status, attempt, retryInMs])).toEqual(
      [
        ["a", 503, 1, 1_000],
        ["b", 204, 1, null],
        ["a", 204, 2, null],
      ],
    );
    expect(got()).toEqual(["a", "b", "a"]);
  });

  test("stopped between two tries, has not forwarded the event", async () => {
    const { clock, whenSet } = createManualClock();
    const { forwarder, stop, whenFetching, arrive } = begin(1, 1, { retries: 9, clock });
    await whenFetching(1);
    const pausing = whenSet(1_000);
    answers.push(503);
    arrive("a");
    await pausing;
    stop.abort(new Error("enough"));
    await forwarder.whenIdle();
    expect(forwarder.forwardedThrough).toBeNull();
  });

  test("begins nothing more once it is stopped", async () => {
    const { run, stop, whenFetching, arrive, forwarder, got } = begin(2, 2);
    await whenFetching(2);
    stop.abort(new Error("enough"));
    arrive("a");
    arrive("b");
    await expect(run).rejects.toThrow("enough");
    await forwarder.whenIdle();
    expect(got()).toEqual([]);
  });
});
