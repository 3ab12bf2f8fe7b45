import type { Random } from "../../src/lib/random.ts";

/**
 * Random JSON texts (RFC 8259) that no parser would write back unchanged: big integers, `1.0`, escapes in every form,
 * lone surrogates, duplicate keys, white space, `__proto__`. It is a custom generator because a hundred thousand of them
 * take fast-check minutes.
 */
export function createJsonTexts(random: Random) {
  const { next, between, chance, pick } = random;

  const repeat = (most: number, make: () => string): string[] => Array.from({ length: between(0, most) }, make);
  const space = () => (chance(0.8) ? "" : repeat(3, () => pick([" ", "\n", "\t", "\r"])).join(""));
  const hex = () => between(0, 0xffff).toString(16).padStart(4, "0");
  const digits = (most: number) => Array.from({ length: between(1, most) }, () => between(0, 9)).join("");

  function number(): string {
    if (chance(0.3)) return pick(["0", "-0", "1.0", "-1.50", "1e400", "1E-400", "9007199254740993", "0.1e+1", "-0.0"]);
    const whole = chance(0.2) ? "0" : `${between(1, 9)}${chance(0.5) ? digits(chance(0.1) ? 300 : 20) : ""}`;
    const fraction = chance(0.3) ? `.${digits(12)}` : "";
    const exponent = chance(0.2) ? `${pick(["e", "E"])}${pick(["", "+", "-"])}${digits(4)}` : "";
    return `${chance(0.3) ? "-" : ""}${whole}${fraction}${exponent}`;
  }

  /** A piece of the text between quotes. */
  function piece(): string {
    const luck = next();
    if (luck < 0.5) return pick(["a", "order", "0", " ", "/", "'", "<script>", "payload", "é", "漢字", "🦉", "\u007f"]);
    if (luck < 0.7) return pick(['\\"', "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t"]);
    if (luck < 0.8) return `\\u${chance(0.5) ? hex() : hex().toUpperCase()}`;
    if (luck < 0.88) return pick(["\\ud83d", "\\udE00", "\\uD83D\\uDE00", "\\ude00\\ud83d", "\\u0000", "\\uFFFF"]);
    if (luck < 0.96) return pick(["\u2028", "\u2029", "\ufeff", "\ufffd", "\u{10ffff}", "\u200d", "\u0301"]);
    // Any character that may appear unescaped.
    const code = pick([between(0x20, 0xd7ff), between(0xe000, 0xffff), between(0x10000, 0x10ffff)]);
    return code === 0x22 || code === 0x5c ? "x" : String.fromCodePoint(code);
  }

  const string = () => `"${repeat(chance(0.02) ? 400 : 6, piece).join("")}"`;

  const key = () =>
    chance(0.5)
      ? string()
      : pick(['"a"', '"a"', '""', '"__proto__"', '"constructor"', '"payload"', '"p\\u0061yload"', '"eventId"']);

  /** @param depth how many more levels may be opened */
  function value(depth: number): string {
    const luck = next();
    if (depth <= 0 || luck < 0.45)
      return pick([number, number, string, string, () => pick(["true", "false", "null"])])();
    return luck < 0.7 ? array(depth) : object(depth);
  }

  function array(depth: number): string {
    const items = repeat(4, () => `${space()}${value(depth - 1)}${space()}`);
    return `[${items.length > 0 ? items.join(",") : space()}]`;
  }

  function object(depth: number): string {
    const members = repeat(4, () => `${space()}${key()}${space()}:${space()}${value(depth - 1)}${space()}`);
    return `{${members.length > 0 ? members.join(",") : space()}}`;
  }

  /** An object nested to exactly this depth, all the way down. */
  function nested(levels: number): string {
    let text = "";
    let closing = "";
    for (let level = 1; level < levels; level += 1) {
      const isObject = level === 1 || chance(0.5);
      text += isObject ? `{${key()}:${space()}` : `[${space()}`;
      closing = `${space()}${isObject ? "}" : "]"}${closing}`;
    }
    return `${text}${levels === 1 ? "{}" : chance(0.5) ? "{}" : "[]"}${closing}`;
  }

  return {
    space,
    /** A member with any value, whose key is no spelling of `payload`. */
    member: () =>
      `${pick(['"a"', '"payloa\\u0064s"', '"__proto__"', '"Payload"', '""'])}${space()}:${space()}${value(3)}`,
    /** A payload, nested no deeper than `deepestPayload`, so that together with the body around it there are 64 levels. */
    object: (): string => (chance(0.03) ? nested(between(1, deepestPayload)) : object(5)),
    nested,
  };
}

/** The body's own object is level 1 of 64 (rules, section 6). */
export const deepestPayload = 63;
