const [width, height] = [160, 28];

/** How a figure changed over the last minutes; the number next to it says the rest. */
export function Spark({ values, name }: { values: readonly number[]; name: string }) {
  const most = Math.max(1, ...values);
  const points = values.map((value, i) => {
    const x = values.length < 2 ? width : (i / (values.length - 1)) * width;
    return `${x.toFixed(1)},${(height - 2 - (value / most) * (height - 4)).toFixed(1)}`;
  });
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${name} over the last minutes, at most ${most.toFixed(most < 10 ? 1 : 0)}`}
    >
      <polyline points={points.join(" ")} />
    </svg>
  );
}
