export interface Acknowledged {
  readonly eventId: string;
  /** When, as `Date.now()`. */
  readonly at: number;
}

/** Events at an even rate, whatever happens to the server; those that it acknowledges are noted. */
export interface Load {
  runFor(seconds: number): Promise<void>;
  /** Every request has its answer, or will have none. */
  answered(): Promise<void>;
  acknowledged(): readonly Acknowledged[];
  figures(): { acknowledged: number; unanswered: number; p50Ms: number; p99Ms: number; longestMs: number };
}

const tickMs = 10;
const timeoutMs = 10_000;

export function createLoad(options: { url: string; apiKey: string; eventsPerSecond: number }): Load {
  const { url, apiKey, eventsPerSecond } = options;
  const acknowledged: Acknowledged[] = [];
  const latencies: number[] = [];
  const underWay = new Set<Promise<void>>();
  let unanswered = 0;
  let sent = 0;

  async function send(): Promise<void> {
    sent += 1;
    const startedAt = performance.now();
    try {
      const response = await fetch(`${url}/v1/ingest`, {
        method: "POST",
        headers: { Authorization: `Bearer ${apiKey}`, "Content-Type": "application/json" },
        body: JSON.stringify({ payload: { n: sent, pad: "x".repeat(280) } }),
        signal: AbortSignal.timeout(timeoutMs),
      });
      const { eventId } = (await response.json()) as { eventId?: string };
      if (response.status !== 202 || eventId === undefined) throw new Error(String(response.status));
      acknowledged.push({ eventId, at: Date.now() });
      latencies.push(performance.now() - startedAt);
    } catch {
      unanswered += 1;
    }
  }

  const percentile = (share: number) => {
    const sorted = latencies.toSorted((a, b) => a - b);
    return Math.round((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0) * 10) / 10;
  };

  return {
    async runFor(seconds) {
      const startedAt = performance.now();
      let done = 0;
      for (;;) {
        const elapsed = Math.min((performance.now() - startedAt) / 1000, seconds);
        for (; done < elapsed * eventsPerSecond; done++) {
          const request = send().finally(() => underWay.delete(request));
          underWay.add(request);
        }
        if (elapsed >= seconds) return;
        await Bun.sleep(tickMs);
      }
    },
    async answered() {
      await Promise.all(underWay);
    },
    acknowledged: () => acknowledged,
    figures: () => ({
      acknowledged: acknowledged.length,
      unanswered,
      p50Ms: percentile(0.5),
      p99Ms: percentile(0.99),
      longestMs: percentile(1),
    }),
  };
}
