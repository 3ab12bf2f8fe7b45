/**
 * How a text begins, on one line of at most `max` characters. The first line alone may be no more than the bracket that
 * indented JSON begins with.
 */
export function extractOf(text: string, max: number): string {
  const line = text.trim().replace(/\s+/g, " ");
  return line.length > max ? `${line.slice(0, max)}…` : line;
}
