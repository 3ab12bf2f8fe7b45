import { peakOf } from "./chart-data.ts";

const width = 84;
const height = 22;

/** A few pixels of history beside a figure that says the rest; nothing when nothing happened. */
export function Sparkline({ values }: { values: readonly number[] }) {
  const peak = peakOf(values)?.value;
  if (peak === undefined) return null;
  const step = width / values.length;
  const bars = values.flatMap((value, i) => {
    if (value === 0) return [];
    const tall = Math.max(2, (value / peak) * height);
    return `M${(i * step).toFixed(1)} ${height}v-${tall.toFixed(1)}h${Math.max(1, step * 0.8).toFixed(1)}v${tall.toFixed(1)}z`;
  });
  return (
    <svg class="sparkline" viewBox={`0 0 ${width} ${height}`} width={width} height={height} aria-hidden="true">
      <path d={bars.join("")} fill="currentColor" />
    </svg>
  );
}
