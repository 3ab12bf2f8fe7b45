/**
 * How many times a random test runs, and from which seed. `bun run fuzz` sets both; otherwise each run has its own seed,
 * which every failure prints along with the command that repeats it.
 */
export function fuzz(suite: string, times: number): { times: number; seed: number; again: string } {
  const seed = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));
  const chosen = Number(process.env.FUZZ_TIMES ?? times);
  const again = `bun run fuzz ${suite} --seed ${seed}${chosen === times ? "" : ` --times ${chosen}`}`;
  return { times: chosen, seed, again };
}

/** Figures from a run, shown by `bun run fuzz`; among all other tests they would only be in the way. */
export function reportFuzz(text: string): void {
  if (process.env.FUZZ_REPORT === "1") process.stdout.write(`  ${text}\n`);
}
