import "./chart.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { zoneName } from "../format/zone.ts";
import type { ChartData, ChartSeries } from "./chart-data.ts";
import { draw, type Plot } from "./chart-plot.ts";
import { moment } from "./chart-text.ts";

const dayMs = 86_400_000;

/**
 * What happened over time, in three forms: drawn, as a sentence for screen readers, and as a table. Pointing at a bucket
 * shows its figures next to the names; clicking it, or dragging over several, leads to what happened in that time.
 */
export function Chart({ data, hrefOf }: { data: ChartData; hrefOf: HrefOf }) {
  const [pointed, setPointed] = useState<number | null>(null);
  const { at, series, format, span } = data;
  const time = pointed === null ? undefined : at[pointed];
  const figureOf = ({ values, whole }: ChartSeries) => {
    if (pointed === null || time === undefined) return whole;
    const value = values[pointed] ?? null;
    return value === null ? "–" : format(value);
  };
  return (
    <div class="chart">
      <ul class="chart-key">
        {series.map((one) => (
          <li key={one.name}>
            {one.shape !== "none" && <i class={`as-${one.shape} ${one.tone}`} aria-hidden="true" />}
            {one.name} <strong>{figureOf(one)}</strong>
          </li>
        ))}
      </ul>
      <Canvas data={data} onPoint={setPointed} hrefOf={hrefOf} />
      <p class="chart-span">
        {time === undefined
          ? `${span}, ${zoneName(at.at(-1) ?? 0)}`
          : `${moment(time, isOfDays(at))} · click or drag for events`}
      </p>
      <Figures data={data} hrefOf={hrefOf} />
    </div>
  );
}

/** The URL that lists the events of a time. @param from the first millisecond @param to the last */
type HrefOf = (from: number, to: number) => string;

const isOfDays = (at: readonly number[]) => (at.at(-1) ?? 0) - (at[0] ?? 0) >= dayMs * 0.9;

function Canvas({ data, onPoint, hrefOf }: { data: ChartData; onPoint(index: number | null): void; hrefOf: HrefOf }) {
  const { route } = useLocation();
  const element = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  const latest = useRef(data);
  latest.current = data;
  const choose = useRef((_first: number, _last: number) => {});
  choose.current = (first, last) => {
    const { at, bucketMs } = data;
    route(hrefOf(at[first] ?? 0, (at[last] ?? 0) + bucketMs - 1));
  };

  useEffect(() => {
    const parent = element.current;
    if (!parent) return;
    const make = () => {
      plot.current?.destroy();
      plot.current = draw(parent, latest.current, {
        onPoint,
        onChoose: (first, last) => choose.current(first, last),
      });
    };
    make();
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", make);
    const size = new ResizeObserver(() => plot.current?.fit(parent.clientWidth));
    size.observe(parent);
    return () => {
      scheme.removeEventListener("change", make);
      size.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [onPoint]);

  useEffect(() => plot.current?.show(data), [data]);

  return <div ref={element} class="chart-plot" role="img" aria-label={data.summary} />;
}

/** Newest first. Rendered only while open: hundreds of cells that change every two seconds are expensive. */
function Figures({ data: { at, bucketMs, series, format, summary }, hrefOf }: { data: ChartData; hrefOf: HrefOf }) {
  const [isOpen, setOpen] = useState(false);
  const newest = at.map((ms, i) => ({ ms, i })).reverse();
  return (
    <details class="chart-table" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Figures as a table</summary>
      {isOpen && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        <section tabIndex={0} aria-label="Figures">
          <table>
            <caption class="visually-hidden">{summary}</caption>
            <thead>
              <tr>
                <th scope="col">From</th>
                {series.map(({ name }) => (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {newest.map(({ ms, i }) => (
                <tr key={ms}>
                  <th scope="row">
                    <a href={hrefOf(ms, ms + bucketMs - 1)}>{moment(ms, isOfDays(at))}</a>
                  </th>
                  {series.map(({ name, values }) => {
                    const value = values[i] ?? null;
                    return <td key={name}>{value === null ? "–" : format(value)}</td>;
                  })}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </details>
  );
}
