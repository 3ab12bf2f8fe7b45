import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { createConnectionShedder } from "../../src/http/connection-shedder.ts";
import { until } from "../support/api-server.ts";

/** Only Linux tells which connections do nothing. */
const onLinux = process.platform === "linux" ? describe : describe.skip;

const held = Promise.withResolvers<void>();
const reached = Promise.withResolvers<void>();
let server: Bun.Server<undefined>;

beforeAll(() => {
  server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      if (request.url.endsWith("/held")) {
        reached.resolve();
        await held.promise;
      }
      return new Response("here");
    },
  });
});
afterAll(() => server.stop(true));

interface Client {
  socket: Socket;
  text: string;
  isClosed: boolean;
  closed: Promise<void>;
  whenText(part: string): Promise<void>;
}

async function client(text: string): Promise<Client> {
  const socket = connect(Number(server.port), "127.0.0.1");
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const waiters: (() => void)[] = [];
  const one: Client = {
    socket,
    text: "",
    isClosed: false,
    closed,
    whenText: (part) =>
      new Promise((done) => {
        const look = () => void (one.text.includes(part) && done());
        waiters.push(look);
        look();
      }),
  };
  socket.on("data", (data) => {
    one.text += data.toString();
    for (const look of waiters) look();
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    one.isClosed = true;
    resolve();
  });
  await new Promise<void>((connected) => socket.once("connect", connected));
  if (text !== "") socket.write(text);
  return one;
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;

onLinux("connections are closed when descriptors run short", () => {
  const shedder = (stalledMs: number) =>
    createConnectionShedder({
      ports: () => [Number(server.port)],
      closeIdle: () => server.closeIdleConnections(),
      stalledMs,
    });

  test("first those whose request does not get on, then those between two requests, never a busy one", async () => {
    const idle = await client(get("/"));
    await idle.whenText("here");
    const busy = await client(get("/"));
    await busy.whenText("here");
    busy.socket.write(get("/held"));
    await reached.promise;
    const stalled = await Promise.all(Array.from({ length: 20 }, () => client("GET / HT")));
    // The listener has taken them all once it has answered a later one.
    expect(await (await fetch(server.url, { keepalive: false })).text()).toBe("here");

    expect(shedder(0).shed(0)).toBe(0);
    expect(shedder(0).shed(15)).toBe(15);
    await until(
      () => stalled.filter(({ isClosed }) => isClosed).length,
      (closed) => closed === 15,
    );
    expect([idle.isClosed, busy.isClosed]).toEqual([false, false]);

    expect(shedder(0).shed(1000)).toBeGreaterThanOrEqual(6);
    await Promise.all([...stalled.map(({ closed }) => closed), idle.closed]);

    expect(busy.isClosed).toBe(false);
    held.resolve();
    await until(
      () => busy.text.split("here").length,
      (parts) => parts === 3,
    );
    busy.socket.destroy();
  });

  test("a request that came in part a moment ago is given time", async () => {
    const fresh = await client("GET / HTTP/1.1\r\n");
    expect(await (await fetch(server.url, { keepalive: false })).text()).toBe("here");
    shedder(60_000).shed(1000);
    fresh.socket.write("Host: localhost\r\n\r\n");
    await fresh.whenText("here");
    fresh.socket.destroy();
  });
});
