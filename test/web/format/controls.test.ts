import { expect, test } from "bun:test";
import { isolated, showControls } from "../../../web/format/controls.ts";

test.each([
  ["a\u202eb", "a⟨U+202E⟩b"],
  ["\u2066x\u2069", "⟨U+2066⟩x⟨U+2069⟩"],
  ["zero\u200bwidth", "zero⟨U+200B⟩width"],
  ["bell\u0007 escape\u001b nul\0", "bell␇ escape␛ nul␀"],
  ["\u007f\u009b", "⟨U+007F⟩⟨U+009B⟩"],
  ["lines\r\n\tstay", "lines\r\n\tstay"],
  // Joined by U+200D, which text in many scripts needs.
  ["\u{1f468}\u200d\u{1f469} é 路 שלום", "\u{1f468}\u200d\u{1f469} é 路 שלום"],
])("%j is shown as %p", (text, shown) => {
  expect(showControls(text)).toBe(shown);
});

test.each([
  ["Shop", "Shop"],
  ["Café 路", "Café 路"],
  ["مستودع", "\u2068مستودع\u2069"],
  ["Shop שלום", "\u2068Shop שלום\u2069"],
  ["a\u202eb\u2069", "a⟨U+202E⟩b⟨U+2069⟩"],
])("%j in a sentence is %j", (name, shown) => {
  expect(isolated(name)).toBe(shown);
});
