/** `12,340` */
export const count = (n: number): string => n.toLocaleString("en-US");

/** `1 event`, `12,340 events` */
export const counted = (n: number, noun: string): string => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
