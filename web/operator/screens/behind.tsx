import type { Polled } from "../api/polled.ts";

/** An unobtrusive bar, shown while the data on screen cannot be refreshed. */
export function Behind({ polled: { data, error }, everyMs }: { polled: Polled<unknown>; everyMs: number }) {
  if (!data || !error) return null;
  return (
    <p class="bar" role="status">
      {error.message} What is shown may be out of date. It is tried again every {everyMs / 1000} s.
    </p>
  );
}
