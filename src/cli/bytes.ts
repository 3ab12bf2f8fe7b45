const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/** A number of bytes for people: `1.5 GiB`. */
export function formatBytes(bytes: number): string {
  let value = Math.max(0, bytes);
  let unit = 0;
  // What would be rounded to 1024 of a unit is 1 of the next.
  while (Math.round(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const rounded = unit === 0 || value >= 10 ? Math.round(value) : Math.round(value * 10) / 10;
  return `${rounded} ${units[unit]}`;
}
