import { type Receiver, startReceiver } from "../../support/receiver.ts";
import { nowUs } from "../bench/event.ts";
import { createHistogram, type Histogram } from "../bench/histogram.ts";
import type { Api } from "../bench/tenants.ts";

/** A webhook that answers at once, to which something is delivered all the time. */
export interface Healthy {
  readonly url: string;
  /** Sends an event every so often from now on, until `stop`, which resolves when all that were accepted have arrived. */
  start(api: Api, apiKey: string): void;
  stop(): Promise<void>;
  readonly sent: number;
  readonly received: number;
  /** From before the event was posted to its arrival. */
  readonly delay: Histogram;
  /** The longest pause between two events: a long one is the machine's, which stood still or had no time for us. */
  readonly longestPauseMs: number;
}

const everyMs = 50;

export function startHealthy(): Healthy {
  const sentAtUs: number[] = [];
  const seen = new Set<number>();
  const delay = createHistogram();
  const posts = new Set<number>();
  let accepted = 0;
  let onQuiet = () => {};
  let longestPauseMs = 0;
  let timer: ReturnType<typeof setInterval> | undefined;
  const receiver: Receiver = startReceiver({
    answer(request) {
      const { n } = (request.json() as { payload: { n: number } }).payload;
      if (!seen.has(n)) delay.record(nowUs() - (sentAtUs[n] ?? 0));
      seen.add(n);
      return new Response(null, { status: 204 });
    },
  });

  return {
    url: `${receiver.url}/healthy`,
    start(api, apiKey) {
      timer = setInterval(() => {
        const sentUs = nowUs();
        longestPauseMs = Math.max(longestPauseMs, (sentUs - (sentAtUs.at(-1) ?? sentUs)) / 1000);
        const n = sentAtUs.push(sentUs) - 1;
        posts.add(n);
        api("POST", "/v1/ingest", apiKey, { payload: { n } })
          .then(() => {
            accepted += 1;
          })
          // One that is refused is missed at the end, when sent and received are compared.
          .catch(() => {})
          .finally(() => {
            posts.delete(n);
            if (posts.size === 0) onQuiet();
          });
      }, everyMs);
    },
    async stop() {
      clearInterval(timer);
      if (posts.size > 0) await new Promise<void>((resolve) => (onQuiet = resolve));
      await receiver.waitFor(accepted);
      await receiver.stop();
    },
    get sent() {
      return sentAtUs.length;
    },
    get received() {
      return seen.size;
    },
    delay,
    get longestPauseMs() {
      return longestPauseMs;
    },
  };
}
