/**
 * The characters of a text, each with those that it may be instead where its case does not matter: `Né` is `["n", "éÉ"]`.
 * They are compared with what `lower` of a database makes of a value, which in all of them concerns ASCII, and other letters
 * only in some locales.
 */
export const inAnyCase = (text: string): string[] => [...text].map(casesOf);

function casesOf(char: string): string {
  const lower = char.toLowerCase();
  if (char <= "\x7f") return lower;
  // What has another length in the other case, as ß has, is not a letter of its own there.
  const others = [lower, char.toUpperCase()].filter(
    (other) => [...other].length === 1 && other.toLowerCase() === lower,
  );
  return [...new Set([char, ...others])].join("");
}
