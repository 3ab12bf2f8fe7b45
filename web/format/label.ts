/**
 * `failed-20260301-123456`, in UTC as on the command line, whatever zone times are shown in: tells anyone who looks at a
 * record later what was asked for, and when.
 */
export const labelOf = (what: string, atMs: number): string =>
  `${what}-${new Date(atMs).toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-")}`;
