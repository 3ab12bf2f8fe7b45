import { expect, test } from "bun:test";
import { actionWords } from "../../../../web/pages/plan/activity-words.ts";

test.each([
  ["webhooks.changed", "Webhooks changed"],
  ["signing_key.rotated", "Signing key rotated"],
  ["api_key.rotated", "API key rotated"],
  ["logout.all", "Signed out everywhere"],
  ["login", "Login"],
])("%s reads as %p", (action, words) => {
  expect(actionWords(action)).toBe(words);
});
