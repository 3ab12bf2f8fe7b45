import "uplot/dist/uPlot.min.css";
import uPlot from "uplot";
import { isUtc } from "../format/zone.ts";
import {
  type ChartData,
  type ChartSeries,
  decadesAround,
  lonely,
  lowestPower,
  type Shape,
  stack,
  type Tone,
} from "./chart-data.ts";
import { tick } from "./chart-text.ts";

/**
 * Draws a chart into an element. uPlot creates its elements one by one and fills them with text, so nothing here becomes
 * markup (the page's trusted types would refuse it). Colours come from the page's tokens when the chart is created: when
 * the colour scheme changes, the chart must be created again.
 */
export interface Plot {
  show(data: ChartData): void;
  fit(width: number): void;
  destroy(): void;
}

const height = 180;
const axisWidth = 56;
const labelWidth = 64;
/** Counts and milliseconds are whole, and so are the axis labels. */
const steps = Array.from({ length: 12 }, (_, i) => [1, 2, 5].map((n) => n * 10 ** i)).flat();

export interface Pointing {
  /** The bucket under the pointer, or none. */
  onPoint(index: number | null): void;
  /** A bucket was clicked, or several were dragged over. */
  onChoose(first: number, last: number): void;
}

export function draw(element: HTMLElement, first: ChartData, { onPoint, onChoose }: Pointing): Plot {
  let data = first;
  const look = readLook();
  const order = drawingOrder(first);
  const halfMs = () => data.bucketMs / 2;

  const plot = new uPlot(
    {
      width: element.clientWidth,
      height,
      ms: 1,
      tzDate: (ms) => (isUtc.peek() ? uPlot.tzDate(new Date(ms), "Etc/UTC") : new Date(ms)),
      padding: [8, 16, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: true, y: false, setScale: false }, points: { show: false } },
      scales: {
        x: { range: () => [(data.at[0] ?? 0) - halfMs(), (data.at.at(-1) ?? 0) + halfMs()] },
        y: first.isLog
          ? { distr: 3, range: (_, min, max) => decadesAround(min, max, data.least) }
          : { range: (_, __, max) => [0, Math.max(max ?? 0, data.least) * 1.08] },
      },
      axes: [
        {
          ...look.axis,
          space: labelWidth,
          size: 28,
          // The splits fall on hours and days of the zone.
          values: (_, splits) => splits.map(tick),
        },
        {
          ...look.axis,
          size: axisWidth,
          space: 36,
          ...(first.isLog
            ? { splits: (_, __, min, max) => powersOfTen(min, max), filter: (_, splits) => splits }
            : { incrs: steps }),
          values: (_, splits) => splits.map(first.tick),
        },
      ],
      series: [{}, ...order.map(({ shape, tone }) => seriesOf(shape, look.colours[tone]))],
      hooks: {
        setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)],
        setSelect: [
          ({ select: { left, width }, posToIdx }) => width > 0 && onChoose(posToIdx(left), posToIdx(left + width)),
        ],
      },
    },
    columnsOf(first),
    element,
  );

  // After a drag there is no click.
  plot.over.addEventListener("click", () => {
    const { idx } = plot.cursor;
    if (typeof idx === "number") onChoose(idx, idx);
  });

  return {
    show(next) {
      data = next;
      plot.setData(columnsOf(next));
    },
    fit: (width) => plot.setSize({ width, height }),
    destroy: () => plot.destroy(),
  };
}

function powersOfTen(min: number, max: number): number[] {
  const powers = [];
  for (let power = min; power <= max * 1.01; power *= 10) powers.push(Number(power.toPrecision(3)));
  return powers;
}

/** Stacked bars start with the tallest, and lines come last, on top of them. */
function drawingOrder({ series }: ChartData) {
  const bars = series.filter(({ shape }) => shape === "bar");
  return [...bars.reverse(), ...series.filter(({ shape }) => shape === "line" || shape === "dashes")];
}

/** What uPlot takes: times, and a column for each series in drawing order. */
function columnsOf(data: ChartData): uPlot.AlignedData {
  const order = drawingOrder(data);
  const bars = order.filter(({ shape }) => shape === "bar").reverse();
  const heights = stack(bars.map(({ values }) => values.map((value) => value ?? 0))).reverse();
  // A bar that adds nothing is left out: its edge would show through around the one before it.
  const lines = (values: ChartSeries["values"]) =>
    values.map((value) => (value === null || !data.isLog ? value : Math.max(value, lowestPower)));
  const columns = order.map(
    ({ values }, i) => heights[i]?.map((sum, at) => (values[at] ? sum : null)) ?? lines(values),
  );
  return [[...data.at], ...columns];
}

function seriesOf(shape: Shape, colour: string): uPlot.Series {
  if (shape === "bar") {
    const paths = uPlot.paths.bars?.({ size: [0.86, 48, 1] });
    return { fill: colour, width: 0, points: { show: false }, ...(paths && { paths }) };
  }
  return {
    stroke: colour,
    width: 1.5,
    ...(shape === "dashes" && { dash: [5, 4] }),
    points: {
      show: true,
      size: 4,
      fill: colour,
      filter: (plot, index) => lonely(plot.data[index] as (number | null)[]),
    },
  };
}

function readLook() {
  const style = getComputedStyle(document.documentElement);
  const token = (name: string) => style.getPropertyValue(name).trim();
  const line = { stroke: token("--line"), width: 1 };
  const colours: Record<Tone, string> = {
    delivered: token("--delivered-mass"),
    failed: token("--failed"),
    waiting: token("--waiting-mass"),
    accent: token("--accent"),
    soft: token("--soft"),
  };
  return {
    colours,
    axis: { stroke: token("--soft"), font: `12px ${style.fontFamily}`, grid: line, ticks: { show: false } },
  };
}
