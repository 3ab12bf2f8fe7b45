import { signal } from "@preact/signals";

const storageKey = "postrider.utc";

/** Whether times are shown in UTC, as in logs, or in the viewer's time zone; remembered by the tab. */
export const isUtc = signal(globalThis.sessionStorage?.getItem(storageKey) === "1");

export function showInUtc(wanted: boolean): void {
  isUtc.value = wanted;
  if (wanted) sessionStorage.setItem(storageKey, "1");
  else sessionStorage.removeItem(storageKey);
}

/** The zone's offset at that time, in minutes. */
const ahead = (ms: number): number => (isUtc.value ? 0 : -new Date(ms).getTimezoneOffset());

/** A date whose UTC parts are those of the zone in which times are shown. */
export const inZone = (ms: number): Date => new Date(ms + ahead(ms) * 60_000);

/** "UTC", "UTC+1", "UTC-3:30". */
export function zoneName(ms: number): string {
  const minutes = ahead(ms);
  if (minutes === 0) return "UTC";
  const rest = Math.abs(minutes) % 60;
  const hours = Math.floor(Math.abs(minutes) / 60);
  return `UTC${minutes < 0 ? "-" : "+"}${hours}${rest === 0 ? "" : `:${String(rest).padStart(2, "0")}`}`;
}
