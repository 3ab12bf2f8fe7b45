import { shortenId } from "../format/shorten.ts";
import { Copy } from "./copy.tsx";

/** An id, shortened in the middle and copied whole. */
export function Id({ value, what, isWhole = false }: { value: string; what: string; isWhole?: boolean }) {
  return (
    <span class="id">
      <span title={value}>{isWhole ? value : shortenId(value)}</span>
      <Copy text={value} what={what} />
    </span>
  );
}
