/**
 * JSON as pieces of text, for colouring. A payload is shown exactly as it was submitted, which `JSON.parse` would not
 * preserve: large integers, `1.0`, repeated keys, escapes.
 */
export interface Token {
  readonly kind: "key" | "string" | "number" | "literal" | "punctuation" | "space";
  readonly text: string;
}

/** Sticky patterns, each for what its first character announces. */
const space = /[ \t\n\r]+/y;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const literal = /true|false|null/y;
const punctuation = /[{}[\],:]/y;

/** What may stand between a key and its colon. */
const colonAhead = /[ \t\n\r]*:/y;

/**
 * Splits a JSON text (RFC 8259) into tokens, in linear time; their texts joined are the original text. It does not
 * validate: where something begins that is not a JSON token, the rest is one literal.
 */
export function tokenizeJson(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const token = tokenAt(text, at) ?? { kind: "literal", text: text.slice(at) };
    tokens.push(token);
    at += token.text.length;
  }
  return tokens;
}

function tokenAt(text: string, at: number): Token | null {
  if (text.startsWith('"', at)) {
    const end = endOfString(text, at);
    if (end === null) return null;
    return { kind: matchAt(colonAhead, text, end) === null ? "string" : "key", text: text.slice(at, end) };
  }
  for (const [kind, pattern] of patterns) {
    const found = matchAt(pattern, text, at);
    if (found !== null) return { kind, text: found };
  }
  return null;
}

const patterns = [
  ["punctuation", punctuation],
  ["space", space],
  ["number", number],
  ["literal", literal],
] as const;

function matchAt(pattern: RegExp, text: string, at: number): string | null {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? null;
}

/** Where the string that begins at `start` ends; null when it never does. */
function endOfString(text: string, start: number): number | null {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === '"') return at + 1;
    if (text[at] === "\\") at += 1;
  }
  return null;
}

/**
 * Deeper lines are indented no further: ingestion allows 64 levels, and a text of nothing but brackets would otherwise
 * grow quadratically.
 */
const deepestIndent = 64;

/** The same tokens, laid out with two spaces per level: only white space is removed and added. */
export function formatJson(tokens: readonly Token[]): Token[] {
  const laidOut: Token[] = [];
  let depth = 0;
  let before: Token | null = null;
  for (const token of tokens) {
    if (token.kind === "space") continue;
    if (isClosing(token)) depth = Math.max(0, depth - 1);
    const between = before && spaceBetween(before, token, depth);
    if (between) laidOut.push({ kind: "space", text: between });
    laidOut.push(token);
    if (isOpening(token)) depth += 1;
    before = token;
  }
  return laidOut;
}

function spaceBetween(before: Token, token: Token, depth: number): string {
  if (isOpening(before) && isClosing(token)) return "";
  if (isOpening(before) || isClosing(token) || isMark(before, ",")) {
    return `\n${"  ".repeat(Math.min(depth, deepestIndent))}`;
  }
  if (isMark(before, ":")) return " ";
  // Two values side by side are not JSON, but must not become one.
  return before.kind === "punctuation" || token.kind === "punctuation" ? "" : " ";
}

const isMark = ({ kind, text }: Token, ...marks: string[]) => kind === "punctuation" && marks.includes(text);
const isOpening = (token: Token) => isMark(token, "{", "[");
const isClosing = (token: Token) => isMark(token, "}", "]");

/** The text of the tokens, joined. */
export const textOf = (tokens: readonly Token[]): string => tokens.map(({ text }) => text).join("");
