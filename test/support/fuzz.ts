/**
 * How often a random test is made, and from which seed. `bun run fuzz` sets both; without it each run has a seed of its
 * own, which every failure prints with the command that repeats it.
 */
export function fuzz(suite: string, times: number): { times: number; seed: number; again: string } {
  const seed = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));
  const chosen = Number(process.env.FUZZ_TIMES ?? times);
  const again = `bun run fuzz ${suite} --seed ${seed}${chosen === times ? "" : ` --times ${chosen}`}`;
  return { times: chosen, seed, again };
}

/** Figures of a run, which `bun run fuzz` shows; among all other tests they would only be in the way. */
export function reportFuzz(text: string): void {
  if (process.env.FUZZ_REPORT === "1") process.stdout.write(`  ${text}\n`);
}
