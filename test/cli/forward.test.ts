import { afterAll, describe, expect, test } from "bun:test";
import { createForwarder, type Forwarded } from "../../src/cli/listen/forward.ts";
import type { Delivery } from "../../src/cli/listen/local-address.ts";
import type { Item } from "../../src/cli/listen/source.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { startReceiver } from "../support/receiver.ts";

const receiver = startReceiver();
afterAll(() => receiver.stop());

/** A forwarder of events `a`, `b`, `c` …, whose deliveries arrive from the server when the test says so. */
function begin(n: number, concurrency: number) {
  const names = Array.from({ length: n }, (_, i) => String.fromCharCode(97 + i));
  const fetching = new Map<string, (delivery: Delivery | null) => void>();
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
        for (const eventId of names) yield { kind: "accepted", eventId };
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
    clock: systemClock,
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

  test("goes on when an event is gone", async () => {
    const { whenFetching, whenForwarded, fetching, arrive, forwarded, got } = begin(2, 2);
    await whenFetching(2);
    fetching.get("a")?.(null);
    arrive("b");
    await whenForwarded(2);
    expect(forwarded.map(({ status, error }) => status ?? error)).toEqual(["the event no longer exists", 204]);
    expect(got()).toEqual(["b"]);
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
