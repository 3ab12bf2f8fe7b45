import { expect, test } from "bun:test";
import { createSharedProbe, probeLifetimeMs } from "../../src/http/shared-probe.ts";
import { useServer } from "../api/scenario.ts";

/** A probe that ends when the test says so, and a clock that goes when it says so. */
function setUp() {
  let now = 0;
  const asked: { end(): void; fail(): void }[] = [];
  const probe = createSharedProbe(
    () =>
      new Promise<void>((resolve, reject) => asked.push({ end: resolve, fail: () => reject(new Error("the disk")) })),
    { monotonicMs: () => now },
  );
  const travel = (ms: number) => {
    now += ms;
  };
  return { probe, asked, travel };
}

test("all who ask while one is under way get its answer, however long it takes", async () => {
  const { probe, asked, travel } = setUp();
  const first = probe();
  travel(10 * probeLifetimeMs);
  const second = probe();
  expect(asked).toHaveLength(1);
  asked[0]?.end();
  await Promise.all([first, second]);
});

test("an answer is kept for a second from its end, and then asked for anew", async () => {
  const { probe, asked, travel } = setUp();
  const first = probe();
  travel(400);
  asked[0]?.end();
  await first;
  travel(probeLifetimeMs - 1);
  await probe();
  expect(asked).toHaveLength(1);
  travel(1);
  const next = probe();
  expect(asked).toHaveLength(2);
  asked[1]?.end();
  await next;
});

test("a failure is everybody's, and is kept no longer than a success", async () => {
  const { probe, asked, travel } = setUp();
  const [first, second] = [probe(), probe()];
  asked[0]?.fail();
  await expect(first).rejects.toThrow("the disk");
  await expect(second).rejects.toThrow("the disk");
  await expect(probe()).rejects.toThrow("the disk");
  travel(probeLifetimeMs);
  const next = probe();
  asked[1]?.end();
  await next;
});

const server = useServer();

test("a thousand visits to /readyz are one commit a second at most", async () => {
  const commits = async () =>
    Number(/^postrider_commit_size_count (\d+)/m.exec((await server().request("GET", "/metrics")).text)?.[1] ?? 0);
  const [before, startedAt] = [await commits(), performance.now()];
  for (let round = 0; round < 20; round += 1) {
    const answers = await Promise.all(Array.from({ length: 50 }, () => server().request("GET", "/readyz")));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  }
  const seconds = (performance.now() - startedAt) / 1000;
  // Beside them the server has a few of its own when it starts.
  expect(await commits()).toBeWithin(before + 1, before + Math.ceil(seconds) + 8);
});
