/** The result for a longer text is worked out each time: strangers may send any. */
const longestText = 64;

/**
 * The same function, with a memory of its latest answers, at most `most` of them. For results that follow from the text alone.
 */
export function remember<T>(read: (text: string) => T, most: number): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    const answer = known.get(text);
    if (answer !== undefined) return answer;
    const found = read(text);
    if (text.length > longestText) return found;
    if (known.size >= most) known.clear();
    known.set(text, found);
    return found;
  };
}
