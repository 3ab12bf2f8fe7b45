import { expect, test } from "bun:test";
import { canGetMail, isRecent, type MailState, mailRules, notSent, queued, sent } from "../../src/domain/mail.ts";

const now = 1_000_000_000;
const state = (given: Partial<MailState> = {}): MailState => ({
  ...{ facts: [{ n: 1 }], leftOut: 0, queuedAt: now, dueAt: now, attempts: 0, sentAt: null },
  ...given,
});

test("a mail says twenty things, and of how many more", () => {
  let waiting = queued(null, { n: 0 }, now);
  for (let n = 1; n < 25; n++) waiting = queued(waiting, { n }, now + n);
  expect(waiting).toMatchObject({ leftOut: 5, queuedAt: now, dueAt: now });
  expect(waiting.facts).toHaveLength(mailRules.facts);
  expect(sent(queued(waiting, { n: 25 }, now), waiting, now)).toMatchObject({ facts: [], leftOut: 1 });
});

test.each([
  [0, 1],
  [1, 2],
  [5, 32],
  [6, 60],
  [40, 60],
])("after %i attempts in vain the next one is %i minutes later", (attempts, minutes) => {
  const after = notSent(state({ attempts }), now);
  expect(after).toMatchObject({ attempts: attempts + 1, dueAt: now + minutes * 60_000, facts: [{ n: 1 }] });
});

test.each<[string, MailState | null, boolean]>([
  ["none", null, false],
  ["one that waits", state(), true],
  ["one that was sent within the hour", state({ dueAt: null, sentAt: now - mailRules.intervalMs + 1 }), true],
  ["one that was sent before", state({ dueAt: null, sentAt: now - mailRules.intervalMs }), false],
])("a link is not ordered again after %s", (_, before, isSoon) => {
  expect(isRecent(before, now)).toBe(isSoon);
});

test("addresses that were made up get no mail", () => {
  expect(canGetMail("sandbox+t1@postrider.invalid")).toBe(false);
  expect(canGetMail("ada@invalid.example")).toBe(true);
});
