import { describe, expect, test } from "bun:test";
import type { EndSignal } from "../../src/cli/io.ts";
import { awaitEndRequests } from "../../src/cli/succession.ts";
import type { Predecessor } from "../../src/handover.ts";

/** A process that is sent signals, and told to stop by its predecessor. As in a real one, a signal reaches all who wait for one. */
function begin() {
  const waiting: ((signal: EndSignal) => void)[] = [];
  const told = Promise.withResolvers<boolean>();
  const predecessor: Predecessor = { say() {}, heard: () => told.promise };
  const requests = awaitEndRequests({
    predecessor,
    nextSignal: () => new Promise<EndSignal>((resolve) => waiting.push(resolve)),
  });
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const send = {
    stop: () => told.resolve(true),
    gone: () => told.resolve(false),
    signal: () => waiting.splice(0).forEach((resolve) => void resolve("SIGTERM")),
  };
  let count = 0;
  void requests.first
    .then(() => {
      count = 1;
      return requests.second();
    })
    .then(() => (count = 2));
  return async (what: keyof typeof send) => {
    send[what]();
    await settled();
    return count;
  };
}

describe("a process that succeeds another counts how often it was asked to end", () => {
  test.each<[string, [Parameters<ReturnType<typeof begin>>[0], number][]]>([
    [
      "by signals",
      [
        ["signal", 1],
        ["signal", 2],
      ],
    ],
    [
      "by signals, after the predecessor has left",
      [
        ["gone", 0],
        ["signal", 1],
        ["signal", 2],
      ],
    ],
    [
      "by a stop of both, told by the predecessor first",
      [
        ["stop", 1],
        ["signal", 1],
        ["signal", 2],
      ],
    ],
    [
      "by a stop of both, signalled first",
      [
        ["signal", 1],
        ["stop", 1],
        ["signal", 2],
      ],
    ],
  ])("%s", async (_, steps) => {
    const ask = begin();
    for (const [what, count] of steps) expect(await ask(what)).toBe(count);
  });
});
