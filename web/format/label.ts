import { exactTime } from "./time.ts";

/** `failed-20260301-123456`: tells anyone who looks at a record later what was asked for, and when. */
export const labelOf = (what: string, atMs: number): string =>
  `${what}-${exactTime(atMs).slice(0, 19).replace(/[-:]/g, "").replace(" ", "-")}`;
