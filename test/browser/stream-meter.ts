import type { Page } from "playwright-core";

/** What arrived on the stream of a page, counted in the page itself, and how well that went on meanwhile. */
export interface Reading {
  readonly messages: number;
  readonly resyncs: number;
  /** Pictures that the browser drew. */
  readonly frames: number;
  /** The longest time without one, in ms. */
  readonly longestGapMs: number;
  /** Times in which the page could not answer, each above 50 ms (Long Tasks API). */
  readonly longTasks: readonly number[];
  /** From each click on, as the browser dates it, to the frame after the one that shows another view's title, in ms. */
  readonly answers: readonly number[];
  /** Since the meter was set to zero. */
  readonly elapsedMs: number;
}

/** Before the page is opened. */
export async function installStreamMeter(page: Page): Promise<void> {
  await page.addInitScript(meter);
}

export const readMeter = (page: Page): Promise<Reading> => page.evaluate<Reading>("streamMeter.read()");

export const resetMeter = (page: Page): Promise<void> => page.evaluate("streamMeter.reset()");

/** Resolves when so many have arrived since the meter was set to zero. */
export const untilMessages = (page: Page, messages: number): Promise<void> =>
  page.evaluate(`streamMeter.until(${messages})`);

// What runs in the page is text: these sources are compiled without the types of a browser.

/** Only the stream is read as text piece by piece, so whatever is read so belongs to it. */
const meter = `{
  let messages, resyncs, frames, longestGapMs, longTasks, answers, startedAt, lastFrameAt;
  const reset = () => {
    messages = resyncs = frames = longestGapMs = 0;
    longTasks = [];
    answers = [];
    startedAt = lastFrameAt = performance.now();
  };
  reset();
  const waiting = new Set();
  const countOf = (text, what) => text.split(what).length - 1;
  const { read } = ReadableStreamDefaultReader.prototype;
  ReadableStreamDefaultReader.prototype.read = async function () {
    const result = await read.call(this);
    if (typeof result.value === "string") {
      messages += countOf(result.value, "\\ndata: ");
      resyncs += countOf(result.value, "event: resync\\n");
      for (const look of [...waiting]) look();
    }
    return result;
  };
  const frame = (now) => {
    frames += 1;
    longestGapMs = Math.max(longestGapMs, now - lastFrameAt);
    lastFrameAt = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) longTasks.push(Math.round(duration));
  }).observe({ type: "longtask" });
  const title = () => document.querySelector("h1")?.textContent;
  addEventListener("click", ({ timeStamp }) => {
    const before = title();
    const look = () => requestAnimationFrame(title() === before ? look : note);
    const note = () => answers.push(Math.round(performance.now() - timeStamp));
    requestAnimationFrame(look);
  }, { capture: true });
  globalThis.streamMeter = {
    reset,
    until: (wanted) => new Promise((resolve) => {
      const look = () => {
        if (messages < wanted) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
    }),
    read: () => ({
      messages, resyncs, frames, longestGapMs, longTasks, answers, elapsedMs: performance.now() - startedAt,
    }),
  };
}`;
