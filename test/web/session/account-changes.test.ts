import { expect, test } from "bun:test";
import { changesAccount } from "../../../web/session/account-changes.ts";

test.each([
  ["tier", true],
  ["limits", true],
  ["standing", true],
  ["billing", true],
  ["webhooks", false],
  ["api_keys", false],
  // A server that is newer than the page.
  ["region", true],
  ["constructor", true],
])("a change of %s changes what the account is read for: %p", (changed, isChanged) => {
  expect(changesAccount(changed)).toBe(isChanged);
});
