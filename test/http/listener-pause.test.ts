import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { createListenerPause } from "../../src/http/listener-pause.ts";
import { connectRaw } from "../support/raw-peer.ts";

const onLinux = process.platform === "linux" ? describe : describe.skip;

onLinux("a listener that is paused", () => {
  const serve = (port = 0) =>
    Bun.serve({ hostname: "127.0.0.1", port, reusePort: true, fetch: () => new Response("here") });
  const descriptors = () => readdirSync("/proc/self/fd").length;
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

  /** A client on a connection of its own, that has sent its request. */
  async function ask({ url }: { readonly url: URL }) {
    const { write, received, closed } = await connectRaw(url.href);
    write("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    return { received, answered: closed.then((said) => said.split("\r\n")[0]) };
  }

  test("accepts nobody, and who has connected meanwhile is answered after it", async () => {
    const server = serve();
    const pause = createListenerPause();
    const reason = pause.reason();
    pause.learn(Number(server.port));
    for (let round = 0; round < 3; round++) {
      reason.begin();
      reason.begin();
      const clients = await Promise.all(Array.from({ length: 20 }, () => ask(server)));
      for (let n = 0; n < 20; n++) await turn();
      expect(clients.map(({ received }) => received())).toEqual(Array(20).fill(""));
      reason.end();
      expect(await Promise.all(clients.map(({ answered }) => answered))).toEqual(Array(20).fill("HTTP/1.1 200 OK"));
    }
    await pause.whileClosing(() => server.stop(true));
  });

  test("accepts nobody until every reason has ended, a listener that comes meanwhile neither", async () => {
    const pause = createListenerPause();
    const [one, other] = [pause.reason(), pause.reason()];
    one.begin();
    const server = serve();
    pause.learn(Number(server.port));
    other.begin();
    one.end();
    const client = await ask(server);
    for (let n = 0; n < 20; n++) await turn();
    expect(client.received()).toBe("");
    other.end();
    expect(await client.answered).toBe("HTTP/1.1 200 OK");
    await pause.whileClosing(() => server.stop(true));
  });

  test("gives back its descriptors, and the port, when it is closed meanwhile", async () => {
    const pause = createListenerPause();
    const reason = pause.reason();
    const first = serve();
    const port = Number(first.port);
    pause.learn(port);
    await first.stop(true);
    const before = descriptors();
    for (let round = 0; round < 5; round++) {
      const server = serve(port);
      pause.learn(port);
      reason.begin();
      await pause.whileClosing(() => server.stop(true));
    }
    // Those of the first one are known to be gone since the second.
    expect(descriptors()).toBeLessThan(before);
    // Nobody has it: it is to be had without being shared.
    Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }).stop(true);
  });

  test("is one of several that share the port, and nobody is lost when another of them closes", async () => {
    const pause = createListenerPause();
    const reason = pause.reason();
    const former = serve();
    const port = Number(former.port);
    pause.learn(port);
    const server = serve(port);
    pause.learn(port);
    reason.begin();
    const clients = await Promise.all(Array.from({ length: 10 }, () => ask(server)));
    for (let n = 0; n < 10; n++) await turn();
    expect(clients.map(({ received }) => received())).toEqual(Array(10).fill(""));
    reason.end();
    expect(await Promise.all(clients.map(({ answered }) => answered))).toEqual(Array(10).fill("HTTP/1.1 200 OK"));
    await pause.whileClosing(() => former.stop(false));
    reason.begin();
    reason.end();
    expect(await (await ask(server)).answered).toBe("HTTP/1.1 200 OK");
    await pause.whileClosing(() => server.stop(true));
  });

  test("that has closed unnoticed is left alone: its descriptor may be somebody else's", async () => {
    const pause = createListenerPause();
    const reason = pause.reason();
    const server = serve();
    pause.learn(Number(server.port));
    await server.stop(true);
    const other = serve();
    reason.begin();
    expect(await (await ask(other)).answered).toBe("HTTP/1.1 200 OK");
    reason.end();
    await other.stop(true);
  });
});
