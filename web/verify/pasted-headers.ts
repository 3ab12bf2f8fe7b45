/** Values by lower-case name; a name that occurs twice has two values. */
export type PastedHeaders = ReadonlyMap<string, readonly string[]>;

/** RFC 9110, section 5.1: a name is a token, and the colon follows immediately. */
const line = /^\s*([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*(.*?)[ \t]*$/;

/** What `curl -v` puts before the lines it sent. */
const sentByCurl = /^> /;

/**
 * Reads headers however they were copied: as HTTP lines, `curl -v` output, a JSON object, or a JSON array of names and
 * values, in pairs or alternating. Anything that is not a header is skipped.
 */
export function parseHeaders(text: string): PastedHeaders {
  const headers = new Map<string, string[]>();
  for (const [name, value] of pairsOfJson(text) ?? pairsOfLines(text)) {
    const key = name.toLowerCase();
    headers.set(key, [...(headers.get(key) ?? []), value]);
  }
  return headers;
}

type Pair = [name: string, value: string];

function pairsOfLines(text: string): Pair[] {
  const lines = text.split(/\r\n|\r|\n/);
  const sent = lines.filter((candidate) => sentByCurl.test(candidate)).map((found) => found.slice(2));
  return (sent.length > 0 ? sent : lines).flatMap((candidate): Pair[] => {
    const [, name, value] = line.exec(candidate) ?? [];
    return name === undefined || value === undefined ? [] : [[name, value]];
  });
}

/** Null when the text is not a JSON object or array. */
function pairsOfJson(text: string): Pair[] | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return null;
  }
  if (Array.isArray(parsed)) return pairsOfArray(parsed);
  if (typeof parsed !== "object" || parsed === null) return null;
  // As returned by `GET /v1/events/{id}/delivery`.
  if ("headers" in parsed && typeof parsed.headers === "object") return pairsOfJson(JSON.stringify(parsed.headers));
  return Object.entries(parsed).flatMap(([name, value]: [string, unknown]) => pairsOf(name, value));
}

function pairsOfArray(items: readonly unknown[]): Pair[] {
  if (items.every((item) => Array.isArray(item))) {
    return items.flatMap(([name, value]) => (typeof name === "string" ? pairsOf(name, value) : []));
  }
  return items.flatMap((name, i) => (i % 2 === 0 && typeof name === "string" ? pairsOf(name, items[i + 1]) : []));
}

function pairsOf(name: string, value: unknown): Pair[] {
  if (Array.isArray(value)) return value.flatMap((one) => pairsOf(name, one));
  return typeof value === "string" || typeof value === "number" ? [[name, String(value).trim()]] : [];
}
