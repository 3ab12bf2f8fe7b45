import { describe, expect, test } from "bun:test";
import { DomainError } from "../../src/domain/errors.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createMemoryLog } from "../../src/store/memory-log.ts";
import type { StreamLog } from "../../src/store/stream-log.ts";
import { createHub, heartbeatMs, maxStreamsPerTenant, resumableMs, type Subscription } from "../../src/stream/hub.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const hour = 3_600_000;

/** @param ready of each tail, for a log that has to be read before it answers */
function setUp({ ready = () => null, ...most }: { ready?: () => Promise<void> | null; mostStreams?: number } = {}) {
  const clock = createFakeClock();
  const memory = createMemoryLog(clock);
  const messages: StreamLog = {
    ...memory,
    watch: (tenantId, onMore) => Object.assign(memory.watch(tenantId, onMore), { ready }),
  };
  const hub = createHub({ clock, log: silentLog, messages, ...most });
  const open = (tenantId = "t1", given: Partial<Subscription> = {}) => {
    const defaults = { sessionId: "s1", endsAt: clock.now() + 2 * hour, stillValid: async () => true };
    return listen(hub.subscribe(tenantId, { ...defaults, ...given }));
  };
  const publish = (n: number, tenantId = "t1", padding = "") =>
    hub.publish(tenantId, "event.accepted", () => ({ n, ...(padding && { padding }) }));
  return { clock, hub, open, publish };
}

interface Message {
  event: string;
  id: string;
  data: { n?: number };
}

/** Reads a stream block by block, as a client would. */
function listen(stream: ReadableStream<Uint8Array>) {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let received = "";
  let bytes = 0;

  async function block(): Promise<string | null> {
    for (;;) {
      const end = received.indexOf("\n\n");
      if (end >= 0) {
        const text = received.slice(0, end);
        received = received.slice(end + 2);
        return text;
      }
      const { done, value } = await reader.read();
      if (done) return null;
      bytes += value.length;
      received += decoder.decode(value, { stream: true });
    }
  }

  return {
    block,
    async message(): Promise<Message> {
      for (;;) {
        const text = await block();
        if (text === null) throw new Error("The stream ended");
        if (text.startsWith(":")) continue;
        const [event = "", id = "", data = ""] = text.split("\n").map((line) => line.slice(line.indexOf(": ") + 2));
        return { event, id, data: JSON.parse(data) };
      }
    },
    async untilEnd(): Promise<string[]> {
      const blocks: string[] = [];
      for (let text = await block(); text !== null; text = await block()) blocks.push(text);
      return blocks;
    },
    close: () => reader.cancel(),
    get bytes() {
      return bytes;
    },
  };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("a stream", () => {
  test("begins with a comment, so that proxies pass the head on, and an id to resume from", async () => {
    const { open, clock } = setUp();
    expect(await open().block()).toMatch(new RegExp(`^: open\nid: ${clock.now()}-\\d+$`));
  });

  test("shows each message with its kind, its id and one line of data", async () => {
    const { hub, open, clock } = setUp();
    const stream = open();
    hub.publish("t1", "account.changed", () => ({ name: "a\nb" }));
    await stream.block();
    expect(await stream.block()).toMatch(
      new RegExp(`^event: account\\.changed\nid: ${clock.now()}-\\d+\ndata: \\{"name":"a\\\\nb"\\}$`),
    );
  });

  test("shows all messages in order, to every reader of the tenant and nobody else", async () => {
    const { open, publish } = setUp();
    const [first, second, stranger] = [open(), open(), open("t2")];
    for (let n = 0; n < 250; n++) publish(n);
    publish(999, "t2");
    for (let n = 0; n < 250; n++) {
      const message = await first.message();
      expect(message.data.n).toBe(n);
      expect(await second.message()).toEqual(message);
    }
    expect((await stranger.message()).data.n).toBe(999);
  });

  test("never gives an id twice, whatever the tenant", async () => {
    const { open, publish } = setUp();
    const streams = [open(), open("t2")];
    for (let n = 0; n < 10; n++) publish(n, n % 2 ? "t1" : "t2");
    const ids = new Set<string>();
    for (const stream of streams) for (let n = 0; n < 5; n++) ids.add((await stream.message()).id);
    expect(ids.size).toBe(10);
  });

  test("sends a comment every 15 seconds", async () => {
    const { open, clock } = setUp();
    const stream = open();
    await stream.block();
    clock.advance(heartbeatMs);
    expect(await stream.block()).toBe(": keep-alive");
    clock.advance(heartbeatMs);
    expect(await stream.block()).toBe(": keep-alive");
  });
});

describe("publish", () => {
  test("does not ask for the data when nobody of the tenant listens", () => {
    const { hub, open } = setUp();
    open("t2");
    let asked = 0;
    const ask = () => ({ asked: ++asked });
    hub.publish("t1", "event.accepted", ask);
    expect(asked).toBe(0);
    hub.publish("t2", "event.accepted", ask);
    expect(asked).toBe(1);
  });

  test("outlives data that cannot be gathered", async () => {
    const { hub, open, publish } = setUp();
    const stream = open();
    hub.publish("t1", "event.accepted", () => {
      throw new Error("broken");
    });
    publish(1);
    expect((await stream.message()).data.n).toBe(1);
  });
});

describe("Last-Event-ID", () => {
  test("resumes after the message that it names", async () => {
    const { open, publish } = setUp();
    const stream = open();
    for (let n = 0; n < 3; n++) publish(n);
    const { id } = await stream.message();
    await stream.close();
    publish(3);
    const resumed = open("t1", { lastEventId: id });
    publish(4);
    for (const n of [1, 2, 3, 4]) expect((await resumed.message()).data.n).toBe(n);
  });

  test("resumes a stream that was cut before its first message", async () => {
    const { open, publish } = setUp();
    publish(0);
    const stream = open();
    const id = /\nid: (.+)$/.exec((await stream.block()) ?? "")?.[1] ?? "";
    await stream.close();
    publish(1);
    const resumed = open("t1", { lastEventId: id });
    publish(2);
    for (const n of [1, 2]) expect((await resumed.message()).data.n).toBe(n);
  });

  test("is not moved by the opening of a stream that resumes", async () => {
    const { open, publish } = setUp();
    const stream = open();
    publish(1);
    const { id } = await stream.message();
    await stream.close();
    publish(2);
    expect(await open("t1", { lastEventId: id }).block()).toBe(": open");
  });

  test("reaches back exactly 1,000 messages", async () => {
    const { open, publish } = setUp();
    const stream = open();
    publish(0);
    publish(1);
    const first = await stream.message();
    const second = await stream.message();
    await stream.close();
    for (let n = 2; n <= 1001; n++) publish(n);
    const resumed = open("t1", { lastEventId: second.id });
    for (let n = 2; n <= 1001; n++) expect((await resumed.message()).data.n).toBe(n);
    expect((await open("t1", { lastEventId: first.id }).message()).event).toBe("resync");
  });

  test("keeps 5 MiB of an account's messages, whatever it puts into them", async () => {
    const { open, publish } = setUp();
    const stream = open();
    const mebibyte = "x".repeat(2 ** 20 - 300);
    const ids: string[] = [];
    for (let n = 0; n < 7; n++) {
      publish(n, "t1", mebibyte);
      ids.push((await stream.message()).id);
    }
    await stream.close();
    const resumed = open("t1", { lastEventId: ids[1] ?? "" });
    for (let n = 2; n < 7; n++) expect((await resumed.message()).data.n).toBe(n);
    await resumed.close();
    expect((await open("t1", { lastEventId: ids[0] ?? "" }).message()).event).toBe("resync");
    // One alone may be larger than all: it is shown, and the next one takes its place.
    const live = open();
    publish(7, "t1", mebibyte.repeat(6));
    expect((await live.message()).data.n).toBe(7);
    publish(8);
    expect((await open("t1", { lastEventId: ids[6] ?? "" }).message()).event).toBe("resync");
  });

  test("keeps 64 MiB of all accounts' messages: who keeps most gives way, and who has left counts no more", async () => {
    const { open, publish, hub, clock } = setUp();
    const mebibyte = "x".repeat(2 ** 20 - 300);
    const small = open("small");
    publish(0, "small");
    publish(1, "small");
    const { id: ofSmall } = await small.message();
    /** Accounts that keep 4 MiB each, and the id before them. */
    const fill = async (from: number, to: number) => {
      const ids = new Map<string, string>();
      for (let account = from; account < to; account++) {
        const stream = open(`t${account}`);
        publish(0, `t${account}`);
        ids.set(`t${account}`, (await stream.message()).id);
        for (let n = 1; n <= 4; n++) publish(n, `t${account}`, mebibyte);
        await stream.close();
      }
      return ids;
    };
    const isWhole = async ([tenantId, lastEventId]: [string, string]) => {
      const resumed = open(tenantId, { lastEventId });
      const { event } = await resumed.message();
      await resumed.close();
      return event !== "resync";
    };
    const wholeOf = async (ids: Map<string, string>) =>
      (await Promise.all([...ids].map(isWhole))).filter(Boolean).length;

    const first = await fill(0, 15);
    expect(await wholeOf(first)).toBe(15);
    for (const tenantId of first.keys()) hub.closeTenant(tenantId);
    const second = await fill(15, 30);
    expect(await wholeOf(second)).toBe(15);
    const third = await fill(30, 32);
    expect((await wholeOf(second)) + (await wholeOf(third))).toBeLessThan(17);
    expect((await open("small", { lastEventId: ofSmall }).message()).data.n).toBe(1);

    clock.advance(resumableMs);
    const fourth = await fill(32, 47);
    expect(await wholeOf(fourth)).toBe(15);
  });

  test.each(["", "x", "1-1", "0x1-2", "99999999999999999999-1"])(
    "%p is unknown: resync, then live",
    async (lastEventId) => {
      const { open, publish } = setUp();
      const stream = open("t1", { lastEventId });
      publish(1);
      expect(await stream.message()).toMatchObject({ event: "resync", data: {} });
      expect((await stream.message()).data.n).toBe(1);
    },
  );

  test("of the future is unknown", async () => {
    const { open, clock } = setUp();
    expect((await open("t1", { lastEventId: `${clock.now()}-999` }).message()).event).toBe("resync");
  });

  test("can resume from a resync", async () => {
    const { open, publish } = setUp();
    const stream = open("t1", { lastEventId: "x" });
    const { id } = await stream.message();
    publish(1);
    const resumed = open("t1", { lastEventId: id });
    expect((await resumed.message()).data.n).toBe(1);
  });

  test("works for 2 minutes after the last stream has closed, and no longer", async () => {
    const { open, publish, clock } = setUp();
    const stream = open();
    publish(0);
    const { id } = await stream.message();
    await stream.close();
    clock.advance(resumableMs - 1);
    publish(1);
    const resumed = open("t1", { lastEventId: id });
    const missed = await resumed.message();
    expect(missed.data.n).toBe(1);
    await resumed.close();
    clock.advance(resumableMs);
    publish(2);
    expect((await open("t1", { lastEventId: missed.id }).message()).event).toBe("resync");
    expect(clock.timers).toBe(1); // the heartbeat of the one stream that is open
  });
});

test("a reader that is too slow loses messages, is told so, and goes on; others lose nothing", async () => {
  const { open, publish } = setUp();
  const slow = open();
  const quick = open();
  const padding = "x".repeat(500);
  for (let n = 0; n < 5000; n++) {
    publish(n, "t1", padding);
    if (n % 100 === 99) for (let seen = n - 99; seen <= n; seen++) expect((await quick.message()).data.n).toBe(seen);
  }
  let last = -1;
  let message = await slow.message();
  for (; message.event !== "resync"; message = await slow.message()) last = message.data.n ?? -1;
  expect(last).toBeGreaterThan(0);
  expect(slow.bytes).toBeLessThan(512 * 1024);
  publish(5000);
  expect((await slow.message()).data.n).toBe(5000);
});

describe("a stream ends", () => {
  test("when its token expires", async () => {
    const { hub, open, clock } = setUp();
    const stream = open("t1", { endsAt: clock.now() + 20_000 });
    clock.advance(19_999);
    expect(hub.openStreams).toBe(1);
    clock.advance(1);
    expect(hub.openStreams).toBe(0);
    expect(await stream.untilEnd()).toEqual([expect.stringContaining(": open"), ": keep-alive"]);
  });

  test("when its own session has ended, and nobody else's does", async () => {
    const { hub, open } = setUp();
    const mine = [open("t1", { sessionId: "ended" }), open("t1", { sessionId: "ended" })];
    open("t1", { sessionId: "renewed" });
    open("t2", { sessionId: "another" });
    hub.closeSession("ended");
    expect(hub.openStreams).toBe(2);
    for (const stream of mine) expect(await stream.untilEnd()).toEqual([expect.stringContaining(": open")]);
  });

  test("at the next heartbeat after its session has ended", async () => {
    const { open, clock } = setUp();
    let valid = true;
    const stream = open("t1", { stillValid: async () => valid });
    clock.advance(heartbeatMs);
    valid = false;
    clock.advance(heartbeatMs);
    expect(await stream.untilEnd()).toHaveLength(3);
  });

  test("but not when its session cannot be read now", async () => {
    const { hub, open, clock } = setUp();
    open("t1", { stillValid: () => Promise.reject(new Error("The storage does not answer")) });
    clock.advance(heartbeatMs);
    await turn();
    expect(hub.openStreams).toBe(1);
  });

  test("when the tenant's streams are closed, and what it had seen is forgotten", async () => {
    const { hub, open, publish, clock } = setUp();
    const [mine, other] = [open(), open("t2")];
    publish(1);
    const { id } = await mine.message();
    hub.closeTenant("t1");
    expect(await mine.block()).toBeNull();
    expect(hub.openStreams).toBe(1);
    expect((await open("t1", { lastEventId: id }).message()).event).toBe("resync");
    hub.closeAll();
    expect(await other.untilEnd()).toEqual([expect.stringContaining(": open")]);
    expect(hub.openStreams).toBe(0);
    expect(clock.timers).toBe(0);
  });

  test("with an error when its reader does not take what waits for it", async () => {
    const { hub, open, publish } = setUp();
    const stuck = open();
    for (let n = 0; n < 1000; n++) publish(n, "t1", "x".repeat(500));
    await turn();
    hub.closeTenant("t1");
    await expect(stuck.untilEnd()).rejects.toThrow("The stream has ended");
  });
});

test("an account has at most 50 streams open", async () => {
  const { hub, open } = setUp();
  const streams = Array.from({ length: maxStreamsPerTenant }, () => open());
  const refusal = expect.objectContaining({ kind: "rate_limited", code: "too_many_streams" });
  expect(() => open()).toThrow(DomainError);
  try {
    open();
  } catch (error) {
    expect(error).toEqual(refusal);
  }
  open("t2");
  await streams[0]?.close();
  open();
  expect(hub.openStreams).toBe(maxStreamsPerTenant + 1);
});

describe("all accounts together", () => {
  const refusal = expect.objectContaining({ kind: "unavailable", code: "too_many_streams_in_all" });
  function outcomeOf(open: () => unknown) {
    try {
      open();
      return "open";
    } catch (error) {
      return error;
    }
  }

  test("have a limit, at which the account with most streams gives up its oldest to one with fewer", async () => {
    const { hub, open } = setUp({ mostStreams: 6 });
    const busy = Array.from({ length: 6 }, () => open("busy"));
    expect(outcomeOf(() => open("busy"))).toEqual(refusal);
    open("t2");
    open("t2");
    await busy[0]?.untilEnd();
    await busy[1]?.untilEnd();
    expect(hub.openStreams).toBe(6);
    open("t3");
    // What was closed comes back, and makes nobody give way who has no more.
    expect(outcomeOf(() => open("busy"))).toEqual(refusal);
    expect(outcomeOf(() => open("t2"))).toEqual(refusal);
    expect(outcomeOf(() => open("t4"))).toBe("open");
  });

  test("who is refused leaves nothing behind", async () => {
    const { hub, open, publish } = setUp({ mostStreams: 1 });
    const stream = open("t1");
    let built = 0;
    expect(outcomeOf(() => open("t2"))).toEqual(refusal);
    hub.publish("t2", "event.accepted", () => ({ n: ++built }));
    expect(built).toBe(0);
    publish(1, "t1");
    expect((await stream.message()).data).toEqual({ n: 1 });
  });
});

describe("a stream over a log that is not ready at once", () => {
  test("begins when it is, and misses nothing from then on", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { open, publish } = setUp({ ready: () => promise });
    const stream = open();
    publish(1);
    await turn();
    resolve();
    expect(await stream.block()).toMatch(/^: open\nid: /);
    publish(2);
    expect((await stream.message()).data).toEqual({ n: 2 });
  });

  test("resumes when it is", async () => {
    let ready: Promise<void> | null = null;
    const { open, publish } = setUp({ ready: () => ready });
    const first = open();
    publish(1);
    publish(2);
    const { id } = await first.message();
    const { promise, resolve } = Promise.withResolvers<void>();
    ready = promise;
    const second = open("t1", { lastEventId: id });
    resolve();
    expect((await second.message()).data).toEqual({ n: 2 });
  });

  test("breaks off when the log cannot be had, and the next one finds another", async () => {
    let ready: Promise<void> | null = Promise.reject(new Error("no database"));
    const { hub, open, publish } = setUp({ ready: () => ready });
    const stream = open();
    await expect(stream.block()).rejects.toThrow("no database");
    expect(hub.openStreams).toBe(0);
    let made = 0;
    hub.publish("t1", "event.accepted", () => ({ made: ++made }));
    expect(made).toBe(0);
    ready = null;
    const next = open();
    publish(1);
    expect((await next.message()).data).toEqual({ n: 1 });
  });

  test("may end before it is", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { hub, open } = setUp({ ready: () => promise });
    const [left, ended] = [open(), open()];
    await left.close();
    hub.closeTenant("t1");
    resolve();
    expect(await ended.untilEnd()).toEqual([]);
    expect(hub.openStreams).toBe(0);
  });
});
