/** `12,340` */
export const count = (n: number): string => n.toLocaleString("en-US");

/** `1 event`, `12,340 events`, `2 crashes` */
export const counted = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;
