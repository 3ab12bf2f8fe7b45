const sampleEveryMs = 250;

/** Watches how many attempts are under way at once, by the server's own gauge. */
export function watchInFlight(port: number): { stop(): number } {
  let peak = 0;
  const timer = setInterval(() => void sample().catch(() => {}), sampleEveryMs);
  async function sample() {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    peak = Math.max(peak, Number(/^postrider_delivery_in_flight (\d+)$/m.exec(text)?.[1] ?? 0));
  }
  return {
    stop() {
      clearInterval(timer);
      return peak;
    },
  };
}
