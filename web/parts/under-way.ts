const underWay = new Set<string>();

/** Does nothing while an earlier action on the same thing runs: two quick taps on a key or a button are one. */
export async function unlessUnderWay(thing: string, run: () => Promise<void>): Promise<void> {
  if (underWay.has(thing)) return;
  underWay.add(thing);
  try {
    await run();
  } finally {
    underWay.delete(thing);
  }
}
