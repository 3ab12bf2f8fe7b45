import { describe, expect, test } from "bun:test";
import type { CDPSession } from "playwright-core";
import { noBrowser, openBrowser } from "./browser.ts";
import { startExecutable } from "./executable.ts";
import { type Account, openAccount } from "./signed-in.ts";
import { installStreamMeter, type Reading, readMeter, resetMeter, untilMessages } from "./stream-meter.ts";
import { ask, follow, seeHeading } from "./visitor.ts";

/**
 * The dashboard while 5,000 messages a second arrive on its stream. They are the server's own: an account whose webhook is
 * its inbox takes events in batches, and each event is three messages (accepted, attempted, finished). Server, load and
 * browser share the machine, so the rate that arrives is measured in the page and said. As a test it takes as many messages
 * as five seconds should bring, however long that takes; `bun run bench:stream` takes those of a minute.
 */
const messagesPerSecond = 5000;
const messagesPerEvent = 3;
const seconds = Number(process.env.STORM_SECONDS ?? 5);

/** What a person would notice is a third of these, and what is measured is printed. */
const bounds = { framesPerSecond: 20, answerMs: 600, heapGrowthBytes: 2_500_000 };

const server = await startExecutable();
const browser = openBrowser(server.url);

describe.skipIf(noBrowser !== null)("5,000 messages a second", () => {
  test.each([
    { view: "the overview", path: "/", heading: "Overview" },
    { view: "the events", path: "/events", heading: "Events" },
  ])("leave $view responsive and its memory flat", async ({ view, path, heading }) => {
    const account = await openLargeAccount();
    await account.ingest({ n: 0 });
    const page = await browser.page({ size: "desktop" });
    await installStreamMeter(page);
    await account.signIn(page);
    await page.goto(server.url + path);
    await page.getByText("Live", { exact: true }).waitFor();
    const devTools = await page.context().newCDPSession(page);

    const storm = startStorm(account);
    // What is compiled and cached once is no growth.
    await untilMessages(page, 2 * messagesPerSecond);
    const heap = [await usedHeap(devTools)];
    await resetMeter(page);
    for (const part of [1, 2, 3]) {
      await untilMessages(page, (messagesPerSecond * seconds * part) / 3);
      heap.push(await usedHeap(devTools));
      for (const name of ["Webhooks", heading]) {
        await follow(page, name);
        await seeHeading(page, name);
      }
    }
    await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))");
    const reading = await readMeter(page);
    await storm.end();

    tell(view, reading, heap);
    expect(reading.answers.length).toBe(6);
    expect(perSecond(reading.frames, reading)).toBeGreaterThan(bounds.framesPerSecond);
    expect(Math.max(...reading.answers)).toBeLessThan(bounds.answerMs);
    expect(Math.max(...heap) - (heap[0] ?? 0)).toBeLessThan(bounds.heapGrowthBytes);
  });
});

/** In bytes, of what is in use. */
async function usedHeap(devTools: CDPSession): Promise<number> {
  await devTools.send("HeapProfiler.collectGarbage");
  return (await devTools.send("Runtime.getHeapUsage")).usedSize;
}

const perSecond = (n: number, { elapsedMs }: Reading) => Math.round((n / elapsedMs) * 1000);

function tell(view: string, reading: Reading, heap: readonly number[]): void {
  const { messages, resyncs, frames, longestGapMs, longTasks, answers } = reading;
  const facts = [
    `${perSecond(messages, reading)} messages/s`,
    `${messages} in all`,
    `${resyncs} resyncs`,
    `${perSecond(frames, reading)} frames/s`,
    `longest without a frame ${Math.round(longestGapMs)} ms`,
    `tasks above 50 ms: ${longTasks.length === 0 ? "none" : `${longTasks.join(" ")} ms`}`,
    `clicks answered after ${answers.join(" ")} ms`,
    `heap ${heap.map((bytes) => (bytes / 1e6).toFixed(2)).join(" ")} MB`,
  ];
  process.stdout.write(`${view}: ${facts.join(", ")}\n`);
}

/** With a quota that the load does not use up, and the inbox as its webhook. */
async function openLargeAccount(): Promise<Account> {
  const account = await openAccount(server.url);
  const tier = `${server.url}/operator/tenants/${account.id}/tier`;
  expect((await ask(tier, "PUT", server.operatorToken(), { tier: "enterprise" })).status).toBe(200);
  const { url } = await account.get<{ url: string }>("/v1/inbox");
  await account.setWebhooks({ webhook_url: url });
  return account;
}

const everyMs = 20;
/** In requests: a server that lags behind is not buried. */
const mostUnderway = 20;

/** Sends what a steady rate owes since the last look. */
function startStorm(account: Account): { end(): Promise<void> } {
  const perMs = messagesPerSecond / messagesPerEvent / 1000;
  const underway = new Set<Promise<unknown>>();
  let sentUpTo = performance.now();
  let failure: unknown = null;
  const timer = setInterval(() => {
    const owed = Math.min(1000, Math.floor((performance.now() - sentUpTo) * perMs));
    if (underway.size > mostUnderway || owed === 0) return;
    sentUpTo += owed / perMs;
    const payloads = Array.from({ length: owed }, (_, n) => ({ event_type: "order.created", order_id: n }));
    const batch = account.ingestAll(payloads).catch((error: unknown) => {
      failure = error;
    });
    underway.add(batch);
    void batch.finally(() => underway.delete(batch));
  }, everyMs);
  return {
    async end() {
      clearInterval(timer);
      await Promise.all(underway);
      if (failure) throw failure;
    },
  };
}
