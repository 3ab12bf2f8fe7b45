/** "12 s ago", "in 4 min"; beyond a month the date. */
export function relativeTime(atMs: number, nowMs: number): string {
  const seconds = Math.round(Math.abs(nowMs - atMs) / 1000);
  if (seconds >= 30 * 86_400) return new Date(atMs).toISOString().slice(0, 10);
  const [amount, unit] =
    seconds < 60
      ? [seconds, "s"]
      : seconds < 3600
        ? [Math.floor(seconds / 60), "min"]
        : seconds < 86_400
          ? [Math.floor(seconds / 3600), "h"]
          : [Math.floor(seconds / 86_400), "d"];
  return atMs > nowMs ? `in ${amount} ${unit}` : `${amount} ${unit} ago`;
}

export function exactTime(ms: number): string {
  return new Date(ms).toISOString().replace("T", " ").slice(0, 23);
}

export function duration(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`;
}
