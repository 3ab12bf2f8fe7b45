import { expect, test } from "bun:test";
import { type MailFact, type MailKind, mailKinds } from "../../src/domain/mail.ts";
import { writeLetter } from "../../src/mail/letters.ts";

const account = { tenantId: "t1", tenantName: 'Ada\'s <b>"shop"</b> & more' };
const at = Date.UTC(2026, 2, 1, 12, 34, 56);
const shop = { webhookId: "wh_1", webhookName: "Shop", webhookHost: "shop.example" };
const facts: Readonly<Record<MailKind, MailFact>> = {
  "password.reset": { ...account, token: "8d0f4nq2c6t1" },
  "password.reset_by_contact": { ...account, token: "8d0f4nq2c6t1" },
  "webhook.failing": { ...account, ...shop, failingSince: at, disablesAt: at + 86_400_000 },
  "webhook.disabled": { ...account, ...shop, failingSince: at, disabledAs: "failing" },
  "charge.failed": { ...account, amountKobo: 1_500_000, reason: "Insufficient funds", retryAt: at, isSuspended: 0 },
  "backup.failed": { at, kind: "backup", error: "The bucket does not exist." },
  "disk.low": { at, freeBytes: 2 ** 29, floorBytes: 2 ** 30 },
  "queue.growing": { at, waiting: 12_345, minutes: 30 },
};
const letter = (kind: MailKind, given: readonly MailFact[] = [facts[kind]], leftOut = 0) =>
  writeLetter(
    kind,
    { facts: given, leftOut, queuedAt: at, dueAt: at, attempts: 0, sentAt: null },
    { baseUrl: "https://relay.example.com" },
  );

test("the mail for a new password", () => {
  expect(letter("password.reset")).toMatchObject({
    subject: "Set a new password for Postrider",
    text: `Somebody asked for a new password for the account t1 at relay.example.com.

If it was you, open this link within an hour. It works once.

https://relay.example.com/new-password#8d0f4nq2c6t1

If it was not you, there is nothing to do: the password stays as it is.

-- 
You get this because your address is the contact of an account at relay.example.com. At most one mail of this kind is sent in an hour.
`,
  });
});

test("a mail about several webhooks names each, and says how many it leaves out", () => {
  const elsewhere = { webhookId: "wh_2", webhookName: "", webhookHost: "other.example" };
  const other = { ...facts["webhook.disabled"], ...elsewhere, disabledAs: "gone" };
  const { subject, text } = letter("webhook.disabled", [facts["webhook.disabled"], other], 3);
  expect(subject).toBe("2 webhooks were disabled");
  expect(text).toContain("- Shop (wh_1 at shop.example) of Ada's");
  expect(text).toContain("every attempt has failed since 2026-03-01 12:34 UTC.\n- wh_2 at other.example of Ada's");
  expect(text).toContain("\n\nAnd 3 more.\n\nNew events are not sent there.");
  expect(letter("webhook.disabled").subject).toBe("A webhook was disabled: shop.example");
});

test("a failed payment says what comes next", () => {
  const words = (given: MailFact) => letter("charge.failed", [{ ...facts["charge.failed"], ...given }]).text;
  expect(words({})).toContain(
    `NGN 15000.00 for ${account.tenantName} (t1): Insufficient funds. It is tried again on 2026-03-01 12:34 UTC.`,
  );
  expect(words({ retryAt: null, isSuspended: 1 })).toContain("The account is suspended until it is paid.");
});

test.each<[MailKind, string]>([
  ["disk.low", "relay.example.com has 0.5 GiB left on the disk of its database"],
  ["queue.growing", "12345 deliveries wait at relay.example.com, and there have been more and more of them"],
])("%s: how things stand has its time, unless an earlier version has queued it", (kind, words) => {
  expect(letter(kind).text).toStartWith(`2026-03-01 12:34 UTC: ${words}`);
  const { at: _, ...untimed } = facts[kind];
  expect(letter(kind, [untimed]).text).toStartWith(words);
});

test("the names of an account and a webhook stay on their line, and are not in a mail that anybody can have sent", () => {
  const tenantName = "\n\nYour account is locked:\r\n\u2028https://evil.example\u202e\n\n";
  expect(
    letter("webhook.disabled", [{ ...facts["webhook.disabled"], tenantName, webhookName: "A\n\nB" }]).text,
  ).toContain("- A B (wh_1 at shop.example) of Your account is locked: https://evil.example (t1): every attempt");
  for (const kind of ["password.reset", "password.reset_by_contact"] as const) {
    const { text, html } = letter(kind, [{ ...facts[kind], tenantName }]);
    expect(text + html).not.toContain("evil");
  }
});

test.each(mailKinds.map((kind) => [kind]))("%s: what others wrote is text, and its lines hold on a phone", (kind) => {
  const { subject, text, html } = letter(kind);
  expect(html).not.toContain("<b>");
  expect(html).toContain("max-width:560px");
  expect(html).toContain("overflow-wrap:anywhere");
  expect(`${subject}${text}`).not.toMatch(/undefined|null|NaN/);
  expect(subject.length).toBeLessThan(70);
});
