import { expect, test } from "bun:test";
import {
  canGetMail,
  dropped,
  type MailKind,
  type MailState,
  mailRules,
  notSent,
  queued,
  queuedLink,
  queuingOf,
  sent,
} from "../../src/domain/mail.ts";

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

test.each<MailKind>(["disk.low", "queue.growing"])("a mail of the kind %s says only how things stand now", (kind) => {
  const queuedAs = queuingOf(kind);
  let waiting = queuedAs(null, { n: 0 }, now);
  for (let n = 1; n < 25; n++) waiting = queuedAs(waiting, { n }, now + n);
  expect(waiting).toMatchObject({ facts: [{ n: 24 }], leftOut: 0, queuedAt: now, dueAt: now });
  // What comes while that is being sent says nothing new.
  expect(sent(queuedAs(waiting, { n: 25 }, now), waiting, now)).toMatchObject({ facts: [], dueAt: null, sentAt: now });
});

test("how things stand now does not take the age of what has waited for longer than a day", () => {
  const queuedAs = queuingOf("disk.low");
  const old = state({ queuedAt: now - mailRules.lifetimeMs, attempts: 9, sentAt: now - 5 });
  expect(queuedAs(old, { n: 2 }, now)).toEqual({
    ...{ facts: [{ n: 2 }], leftOut: 0, queuedAt: now, attempts: 0 },
    ...{ dueAt: now - 5 + mailRules.intervalMs, sentAt: now - 5 },
  });
  const recent = state({ queuedAt: now - mailRules.lifetimeMs + 1, attempts: 9 });
  expect(queuedAs(recent, { n: 2 }, now)).toEqual({ ...recent, facts: [{ n: 2 }] });
});

test.each([
  [0, 1],
  [1, 2],
  [5, 32],
  [6, 60],
  [40, 60],
])("after %i attempts in vain the next one is %i minutes later", (attempts, minutes) => {
  const before = state({ attempts });
  const after = notSent(before, before, now);
  expect(after).toMatchObject({ attempts: attempts + 1, dueAt: now + minutes * 60_000, facts: [{ n: 1 }] });
});

test("after a day only what has waited that long is given up, not what came since", () => {
  const { lifetimeMs } = mailRules;
  const over = now + lifetimeMs;
  let waiting = state({ attempts: 9 });
  for (const [n, at] of [
    [2, now + 1],
    [3, over - 60_000],
    [4, over],
  ] as const) {
    waiting = queued(waiting, { n }, at);
  }
  const after = notSent(waiting, waiting, over + 1);
  expect(after).toMatchObject({ facts: [{ n: 3 }, { n: 4 }], queuedAt: over - 60_000, attempts: 10 });
  expect(after?.dueAt).toBe(over + 1 + 60 * 60_000);
  const last = over - 60_000 + lifetimeMs;
  expect(after && notSent(after, after, last)).toMatchObject({ facts: [{ n: 4 }], queuedAt: over });
  expect(after && notSent(after, after, over + lifetimeMs)).toMatchObject({ facts: [], dueAt: null, sentAt: 0 });
});

const { intervalMs } = mailRules;
const link = { tenantId: "t1", token: "new" };
const earlier = { tenantId: "t1", token: "old" };
const alone = { facts: [link], leftOut: 0, queuedAt: now, dueAt: now, attempts: 0, sentAt: null };

test.each<[string, MailState | null, MailState | null]>([
  ["nothing: it is due at once", null, alone],
  ["one that was sent within the hour: there is no other", state({ dueAt: null, sentAt: now - intervalMs + 1 }), null],
  [
    "one that was sent before",
    state({ dueAt: null, sentAt: now - intervalMs }),
    { ...alone, sentAt: now - intervalMs },
  ],
  ["one that is due: that may be on its way", state({ facts: [earlier] }), null],
  [
    "one that waits to be tried again, in place of it",
    state({ facts: [earlier], attempts: 6, queuedAt: 5, dueAt: now + 1 }),
    { ...alone, attempts: 6, dueAt: now + 1 },
  ],
  [
    "one that waits longer, to be tried within a minute: it must not expire meanwhile",
    state({ facts: [earlier], attempts: 6, queuedAt: 5, dueAt: now + 3_600_000 }),
    { ...alone, attempts: 6, dueAt: now + 60_000 },
  ],
  ["one of another account that waits to be tried again", state({ facts: [{ tenantId: "t2" }], dueAt: now + 1 }), null],
])("a link for a new password is ordered after %s", (_, before, after) => {
  expect(queuedLink(before, link, now)).toEqual(after);
});

test.each<[string, number | null, number]>([
  ["none was sent before", null, now],
  ["one was sent within the hour", now - 1, now - 1 + intervalMs],
  ["one was sent before", now - intervalMs, now],
])("a mail of which nothing holds delays none: %s", (_, sentAt, dueAt) => {
  const read = state({ sentAt });
  const empty = dropped(read, read, now);
  expect(empty).toMatchObject({ facts: [], dueAt: null, sentAt: sentAt ?? 0 });
  expect(queued(empty, { n: 2 }, now).dueAt).toBe(dueAt);
  expect(dropped(queued(read, { n: 2 }, now), read, now)).toMatchObject({ facts: [{ n: 2 }], dueAt });
});

test.each([
  ["sent", sent],
  ["dropped", dropped],
  ["not sent", notSent],
])("a mail that was %s changes nothing of one that was queued later", (_, become) => {
  expect(become(state({ queuedAt: now + 1 }), state({ queuedAt: now }), now + 2)).toBeNull();
});

test("addresses that were made up get no mail", () => {
  expect(canGetMail("sandbox+t1@postrider.invalid")).toBe(false);
  expect(canGetMail("ada@invalid.example")).toBe(true);
});
