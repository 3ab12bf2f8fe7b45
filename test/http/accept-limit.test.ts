import { afterEach, describe, expect, test } from "bun:test";
import { createAcceptLimit, newConnections, unaskedRequests } from "../../src/http/accept-limit.ts";
import { createListenerPause } from "../../src/http/listener-pause.ts";
import { connectRaw } from "../support/raw-peer.ts";
import { startTestApp } from "../support/test-app.ts";

describe("of one turn of the loop", () => {
  let pauses: string[] = [];
  let turnOver: (() => void) | undefined;
  let nowMs = 0;
  let asked = 0;
  const limit = () =>
    createAcceptLimit({
      pause: { begin: () => void pauses.push("begin"), end: () => void pauses.push("end") },
      monotonicMs: () => nowMs,
      afterTurn: (callback) => {
        expect(turnOver).toBeUndefined();
        turnOver = callback;
      },
    });
  const request = new Request("http://localhost/");
  const from = (port: number) => ({
    requestIP() {
      asked += 1;
      return { address: "127.0.0.1", family: "IPv4" as const, port };
    },
  });
  const endTurn = () => {
    turnOver?.();
    turnOver = undefined;
  };
  afterEach(() => {
    endTurn();
    pauses = [];
    asked = 0;
  });

  test(`the first ${unaskedRequests} requests are not asked where they come from`, () => {
    const { note } = limit();
    for (let port = 1; port <= unaskedRequests; port++) note(request, from(port));
    expect(asked).toBe(0);
    note(request, from(1));
    expect(asked).toBe(1);
  });

  test(`beyond them, ${newConnections} new connections pause the listener, once, until the turn is over`, () => {
    const { note } = limit();
    let port = 0;
    for (; port < unaskedRequests + newConnections - 1; port++) note(request, from(port));
    expect(pauses).toEqual([]);
    for (; port < 300; port++) note(request, from(port));
    expect(pauses).toEqual(["begin"]);
    endTurn();
    expect(pauses).toEqual(["begin", "end"]);
  });

  test("connections that were heard a moment ago do not, however many they are", () => {
    const { note } = limit();
    const kept = Array.from({ length: 1000 }, (_, n) => 2000 + n);
    const hear = () => {
      for (const port of kept) note(request, from(port));
      endTurn();
    };
    // While they become known, the listener rests in some turns.
    for (let turn = 0; turn < 100; turn++) hear();
    pauses = [];
    for (let turn = 0; turn < 10; turn++) {
      nowMs += 100;
      hear();
    }
    expect(pauses.filter((what) => what === "begin")).toEqual([]);
  });

  test("a connection that was not heard for 200 ms counts as new: its port may be another client's", () => {
    const { note } = limit();
    const turn = () => {
      for (let port = 0; port < unaskedRequests + newConnections; port++) note(request, from(port));
      endTurn();
    };
    turn();
    nowMs += 100;
    turn();
    expect(pauses).toEqual(["begin", "end", "end"]);
    nowMs += 200;
    turn();
    expect(pauses.slice(3)).toEqual(["begin", "end"]);
  });

  test("a connection that the server knows nothing of counts as new: it has been reset", () => {
    const { note } = limit();
    for (let n = 0; n < unaskedRequests + newConnections; n++) note(request, { requestIP: () => null });
    expect(pauses).toEqual(["begin"]);
  });
});

const onLinux = process.platform === "linux" ? describe : describe.skip;

onLinux("when 300 clients connect at once", () => {
  /** Each has a connection of its own. */
  async function askAtOnce(url: string, path: string): Promise<void> {
    const clients = await Promise.all(Array.from({ length: 300 }, () => connectRaw(url)));
    for (const client of clients) client.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
    for (const { closed } of clients) expect(await closed).toStartWith("HTTP/1.1 200");
  }

  /** How many requests came in each turn until all clients had their answer. */
  async function requestsOfEachTurn(isLimited: boolean): Promise<number[]> {
    const pause = createListenerPause();
    const { note } = createAcceptLimit({ pause: pause.reason(), monotonicMs: () => performance.now() });
    const turns: number[] = [];
    let ofTurn = 0;
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      reusePort: true,
      fetch(request, self) {
        if (isLimited) note(request, self);
        if (ofTurn === 0) {
          setImmediate(() => {
            turns.push(ofTurn);
            ofTurn = 0;
          });
        }
        ofTurn += 1;
        return new Response("here");
      },
    });
    pause.learn(Number(server.port));
    await askAtOnce(server.url.href, "/");
    await pause.whileClosing(() => server.stop(true));
    return turns;
  }

  test("a turn takes no more than its share, and everybody gets in", async () => {
    const turns = await requestsOfEachTurn(true);
    expect(turns.reduce((sum, count) => sum + count)).toBe(300);
    expect(Math.max(...turns)).toBe(unaskedRequests + newConnections);
  });

  test("without the limit one turn takes most of them, which is why there is one", async () => {
    expect(Math.max(...(await requestsOfEachTurn(false)))).toBeGreaterThan(200);
  });

  test("the server itself answers them over several turns", async () => {
    const { url, log, stop } = await startTestApp();
    let isOver = false;
    let most = 0;
    const watched = (async () => {
      for (let before = log.length; !isOver; before = log.length) {
        await new Promise((resolve) => setImmediate(resolve));
        most = Math.max(most, log.length - before);
      }
    })();
    await askAtOnce(url, "/healthz");
    isOver = true;
    await watched;
    await stop();
    expect(log.filter((line) => line.includes("/healthz")).length).toBe(300);
    expect(most).toBeLessThanOrEqual(unaskedRequests + newConnections);
  });
});
