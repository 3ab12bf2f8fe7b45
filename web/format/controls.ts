/**
 * Characters that are invisible themselves but change how the text around them is shown, or hide in it: those that change
 * the direction of text (Unicode Standard Annex 9), zero-width spaces, and terminal control codes.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const unseen = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/** Untrusted text made safe to show: "a\u202eb" → "a⟨U+202E⟩b". Only copies keep the original characters. */
export const showControls = (text: string): string =>
  text.replace(unseen, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });

/** Scripts that are written from right to left. */
const rightToLeft = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/**
 * A name as part of a sentence, for text that is no markup: what `<bdi>` does there. Otherwise an Arabic or Hebrew name
 * turns the figures next to it round. Other names stay as they are, so that text can be copied and found.
 */
export function isolated(name: string): string {
  const shown = showControls(name);
  return rightToLeft.test(shown) ? `\u2068${shown}\u2069` : shown;
}
