import { afterAll, describe, expect, test } from "bun:test";
import { createServerClient } from "../../src/cli/client/server.ts";
import { createTravelClock, until } from "../support/api-server.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";

const receivers: Receiver[] = [];
afterAll(async () => {
  await Promise.all(receivers.map((receiver) => receiver.stop()));
});

/** A client of a server that answers like this. */
function clientOf(answer: () => Response | Promise<Response>) {
  const server = startReceiver({ answer });
  receivers.push(server);
  const clock = createTravelClock();
  let limits = 0;
  const counting = {
    ...clock,
    after(delayMs: number, callback: () => void) {
      limits += 1;
      return clock.after(delayMs, callback);
    },
  };
  const client = createServerClient({ url: server.url, clock: counting, signal: new AbortController().signal });
  /** Resolves when the client has limited its waiting this many times: for the head, after it, and after each piece. */
  const whenLimited = (times: number) =>
    until(
      () => limits,
      (seen) => seen >= times,
    );
  return { server, clock, client, whenLimited };
}

/** A body that is written piece by piece. */
function createBody() {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  return {
    readable,
    write: (bytes: Uint8Array) => void writer.write(bytes).catch(() => {}),
    end: () => void writer.close().catch(() => {}),
  };
}

describe("a stream", () => {
  test.each([
    ["does not begin", () => new Promise<Response>(() => {})],
    [
      "is refused in an answer that does not end",
      () => {
        const { readable, write } = createBody();
        write(Buffer.from("<h1>"));
        return new Response(readable, { status: 502 });
      },
    ],
  ] as [string, () => Response | Promise<Response>][])("that %s within 30 s has failed for now", async (_, answer) => {
    const { server, clock, client } = clientOf(answer);
    const opened = client.open("/v1/stream", { signal: new AbortController().signal });
    await server.waitFor(1);
    clock.travel(30_000);
    await expect(opened).rejects.toMatchObject({ name: "TemporaryFailure", reason: "did not answer within 30 s" });
  });

  test("that has begun may be silent for as long as it likes", async () => {
    const { readable, write, end } = createBody();
    write(Buffer.from("a"));
    const { clock, client } = clientOf(() => new Response(readable));
    const opened = await client.open("/v1/stream", { signal: new AbortController().signal });
    if (!("chunks" in opened)) throw new Error("It was refused.");
    clock.travel(60_000);
    write(Buffer.from("b"));
    end();
    const read: Uint8Array[] = [];
    for await (const chunk of opened.chunks) read.push(chunk);
    expect(Buffer.concat(read).toString()).toBe("ab");
  });
});

test("what cannot be sent is no failure for now", async () => {
  const { client } = clientOf(() => new Response());
  await expect(client.call("GET", "/v1/events", { token: "tok…en" })).rejects.toBeInstanceOf(TypeError);
});

describe("an answer", () => {
  test("may take any time as long as more of it comes, and is what was sent", async () => {
    const { readable, write, end } = createBody();
    const { clock, client, whenLimited } = clientOf(() => new Response(readable));
    const called = client.call("GET", "/v1/events");
    const bytes = Buffer.from('"é€"');
    for (const [nth, byte] of bytes.entries()) {
      write(Uint8Array.of(byte));
      await whenLimited(3 + nth);
      clock.travel(20_000);
    }
    end();
    expect(await called).toMatchObject({ text: '"é€"', json: "é€" });
  });

  test("of which nothing more comes for 30 s has failed for now, and may stand for a request that has arrived", async () => {
    const { readable, write } = createBody();
    const { clock, client, whenLimited } = clientOf(() => new Response(readable));
    const called = client.call("POST", "/v1/ingest");
    write(Buffer.from("{"));
    await whenLimited(3);
    clock.travel(29_000);
    clock.travel(1_000);
    await expect(called).rejects.toMatchObject({
      reason: "did not go on with its answer for 30 s",
      details: { mayHaveArrived: true },
    });
  });
});
