/** The candidate that a typo most likely meant; null when none is close. */
export function nearest(given: string, candidates: readonly string[]): string | null {
  let best: { candidate: string; distance: number } | null = null;
  for (const candidate of candidates) {
    const distance = editDistance(given, candidate);
    if (best === null || distance < best.distance) best = { candidate, distance };
  }
  if (best === null) return null;
  const { candidate, distance } = best;
  // Beyond a third of the letters it is another word, not a typo. One is always forgiven (`serv`), and two that were left out (`ls`).
  const isShort = distance <= 2 && candidate.length - given.length === distance;
  return isShort || distance <= Math.max(1, Math.floor(candidate.length / 3)) ? candidate : null;
}

/**
 * Tells which of the names an unknown one most likely meant, which may also be spelt otherwise (`rateLimit`) or lack whole words
 * (`grace_period`, `types`). With more words (`max_events`, `password_confirmation`) it is another name. Null when none is close.
 */
export function nearestAmong(names: readonly string[]): (given: string) => string | null {
  const spelt = names.map(wordsOf);
  const joined = spelt.map(joinedWords);
  return (given) => {
    const words = wordsOf(given);
    const lacksWords = (name: string) => name.startsWith(`${words}_`) || name.endsWith(`_${words}`);
    // Stricter than for a hint, because it leads to a refusal; and a name of another length is not worth the time.
    const isTypo = (name: string) => {
      const most = name.length < 6 ? 1 : 2;
      return Math.abs(name.length - words.length) <= most && editDistance(words, name) <= most;
    };
    const meant = spelt[joined.indexOf(joinedWords(words))] ?? spelt.find(lacksWords) ?? spelt.find(isTypo);
    return names.find((_, i) => spelt[i] === meant) ?? null;
  };
}

/** `rateLimit`, `Rate-Limit` → `rate_limit`. */
const wordsOf = (name: string) =>
  name
    .replace(/(?<=[a-z0-9])(?=[A-Z])/g, "_")
    .replace(/[-_ ]+/g, "_")
    .toLowerCase();

const joinedWords = (words: string) => words.replaceAll("_", "");

/** Fewest insertions, deletions, replacements and swaps of neighbours (optimal string alignment) from one to the other. */
export function editDistance(from: string, to: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const isSame = from[i - 1] === to[j - 1];
      let cost = Math.min(at(previous, j) + 1, at(row, j - 1) + 1, at(previous, j - 1) + (isSame ? 0 : 1));
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]) {
        cost = Math.min(cost, at(beforePrevious, j - 2) + 1);
      }
      row.push(cost);
    }
    beforePrevious = previous;
    previous = row;
  }
  return at(previous, to.length);
}

const at = (row: readonly number[], index: number) => row[index] ?? 0;
