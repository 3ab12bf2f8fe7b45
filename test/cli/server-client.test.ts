import { afterAll, describe, expect, test } from "bun:test";
import { createServerClient } from "../../src/cli/client/server.ts";
import { createTravelClock } from "../support/api-server.ts";
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
  const client = createServerClient({ url: server.url, clock, signal: new AbortController().signal });
  return { server, clock, client };
}

/** A body that is written piece by piece. */
function createBody() {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  return {
    readable,
    write: (text: string) => void writer.write(Buffer.from(text)).catch(() => {}),
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
        write("<h1>");
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
    write("a");
    const { clock, client } = clientOf(() => new Response(readable));
    const opened = await client.open("/v1/stream", { signal: new AbortController().signal });
    if (!("chunks" in opened)) throw new Error("It was refused.");
    clock.travel(60_000);
    write("b");
    end();
    const read: Uint8Array[] = [];
    for await (const chunk of opened.chunks) read.push(chunk);
    expect(Buffer.concat(read).toString()).toBe("ab");
  });
});
