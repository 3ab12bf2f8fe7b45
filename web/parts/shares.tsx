import "./shares.css";
import { count } from "../format/number.ts";

export interface Share {
  /** `neither`: it was not delivered and has not failed. */
  readonly tone: "delivered" | "failed" | "waiting" | "neither";
  readonly n: number;
  readonly word: string;
}

/** A bar showing what became of a number of things. What its parts say is next to it as text, too. */
export function Shares({ of, parts, whole }: { of: string; parts: readonly Share[]; whole?: number }) {
  const shown = parts.filter(({ n }) => n > 0);
  const sum = shown.reduce((total, { n }) => total + n, 0);
  const words = shown.map(({ n, word }) => `${count(n)} ${word}`).join(", ");
  const total = Math.max(whole ?? sum, sum, 1);
  return (
    <div class="shares" role="img" aria-label={words === "" ? `No ${of} yet` : `Of the ${of}: ${words}`} title={words}>
      {shown.map(({ tone, n, word }) => (
        <i key={word} class={tone} style={{ width: `${(100 * n) / total}%` }} />
      ))}
    </div>
  );
}
