import type { Point } from "./trend.ts";

export interface Panel {
  title: string;
  points: readonly Point[];
}

const width = 900;
const panelHeight = 150;
const margin = { left: 70, right: 20, top: 28, bottom: 14 };

/** Panels below each other, over the same minutes, as one SVG. */
export function drawPlot(title: string, panels: readonly Panel[]): string {
  const height = 40 + panels.length * panelHeight;
  const toX = Math.max(...panels.flatMap(({ points }) => points.map(({ x }) => x)), 1e-9);
  const body = panels.map((panel, i) => drawPanel(panel, 40 + i * panelHeight, toX)).join("\n");
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
<text x="${margin.left}" y="22" font-size="15">${title}</text>
${body}
</svg>
`;
}

function drawPanel({ title, points }: Panel, top: number, toX: number): string {
  const toY = Math.max(...points.map(({ y }) => y), 1e-9) * 1.1;
  const bottom = top + panelHeight - margin.bottom;
  const plotTop = top + margin.top;
  const place = ({ x, y }: Point) => {
    const across = margin.left + (x / toX) * (width - margin.left - margin.right);
    return `${across.toFixed(1)},${(bottom - (y / toY) * (bottom - plotTop)).toFixed(1)}`;
  };
  return [
    `<text x="${margin.left}" y="${top + 18}">${title}</text>`,
    `<line x1="${margin.left}" y1="${bottom}" x2="${width - margin.right}" y2="${bottom}" stroke="#999"/>`,
    `<text x="${margin.left - 6}" y="${bottom}" text-anchor="end">0</text>`,
    `<text x="${margin.left - 6}" y="${plotTop + 4}" text-anchor="end">${toY.toPrecision(3)}</text>`,
    `<text x="${width - margin.right}" y="${bottom + 12}" text-anchor="end">${toX.toFixed(1)} min</text>`,
    `<polyline fill="none" stroke="#1a5fb4" stroke-width="1.2" points="${points.map(place).join(" ")}"/>`,
  ].join("\n");
}
