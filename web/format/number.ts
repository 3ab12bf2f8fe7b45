/** Figures as people read them. Groups of digits are separated by a narrow no-break space. */

const narrowSpace = "\u202f";

/** `18204` → "18 204". */
export function count(n: number): string {
  const [whole = "", fraction] = String(n).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, narrowSpace);
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

/**
 * A share in per cent, to a tenth. Only all is "100 %" and only none is "0 %": one failure in a million is exactly what a
 * person looks for. A share of nothing does not exist.
 */
export function percent(part: number, whole: number): string {
  if (whole === 0) return "–";
  const tenths = Math.round((part / whole) * 1000);
  if (tenths >= 1000 && part < whole) return "> 99.9 %";
  if (tenths <= 0 && part > 0) return "< 0.1 %";
  return `${tenths / 10} %`;
}

/**
 * How deliveries went: "99.7 % success". A delivery that failed and waits for a retry is not in it, which is then said.
 * @param retried deliveries that wait after a failure
 */
export const successWords = (delivered: number, ended: number, retried: number): string =>
  `${percent(delivered, ended)} ${retried > 0 ? "of those finished" : "success"}`;

const byteUnits = ["B", "KB", "MB", "GB", "TB"] as const;

/** A size in units of 1,000 bytes: "512 B", "1.2 KB", "262 KB". */
export const bytes = (n: number): string => inUnits(n, byteUnits);

function inUnits(n: number, [unit = "", ...larger]: readonly string[]): string {
  const shown = n < 10 && !Number.isInteger(n) ? Math.round(n * 10) / 10 : Math.round(n);
  return shown >= 1000 && larger.length > 0 ? inUnits(n / 1000, larger) : `${shown} ${unit}`;
}

/** Money, from an integer number of kobo: "NGN 1 500.00". */
export function naira(kobo: number): string {
  const size = Math.abs(kobo);
  const rest = String(size % 100).padStart(2, "0");
  return `${kobo < 0 ? "-" : ""}NGN ${count(Math.floor(size / 100))}.${rest}`;
}
