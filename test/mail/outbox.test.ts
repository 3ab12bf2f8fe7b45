import { expect, test } from "bun:test";
import type { OwnNews } from "../../src/delivery/own-events.ts";
import { unavailable } from "../../src/domain/errors.ts";
import { type MailFact, type MailState, mailRules, queued, type WaitingMail } from "../../src/domain/mail.ts";
import type { Tenant } from "../../src/domain/tenant.ts";
import { createLog } from "../../src/lib/log.ts";
import { createNotices } from "../../src/mail/notices.ts";
import { createOutbox } from "../../src/mail/outbox.ts";
import type { MailOrder } from "../../src/store/mail.ts";
import type { Store } from "../../src/store/store.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const ada = { key: 1, id: "t1", name: "Ada's shop", email: "Ada@example.com" } as Tenant;
const sandbox = { key: 2, id: "t2", name: "Sandbox", email: "sandbox+t2@postrider.invalid" } as Tenant;

/** An outbox in memory, and a post that says what it is given. */
function setUp({ holds = true, tenants = [ada, sandbox] }: { holds?: boolean; tenants?: Tenant[] } = {}) {
  const clock = createFakeClock();
  const waiting: WaitingMail[] = [];
  const posted: string[] = [];
  const ended: string[] = [];
  const lines: Record<string, unknown>[] = [];
  let refusal: string | null = null;
  let isFull = false;
  let isHanging = false;
  let isBroken = false;
  let most = holds ? Number.POSITIVE_INFINITY : 0;
  const unreadable = new Set<string>();
  const standing = { "disk.low": true, "queue.growing": true };
  const store: Pick<
    Store,
    "queueMail" | "dueMail" | "mailSent" | "mailDropped" | "mailNotSent" | "findTenant" | "webhooks"
  > = {
    async queueMail({ kind, recipient, fact }: MailOrder, now) {
      if (isFull) return false;
      waiting.push({ kind, recipient, state: queued(null, fact, now) });
      return true;
    },
    dueMail: async (_, limit) => ({ mails: waiting.slice(0, limit), nextAt: null }),
    async mailSent({ kind }) {
      if (isBroken) throw new Error("disk full");
      waiting.splice(0, 1);
      ended.push(`${kind} sent`);
    },
    async mailDropped({ kind }) {
      waiting.splice(0, 1);
      ended.push(`${kind} dropped`);
    },
    async mailNotSent({ kind }) {
      ended.push(`${kind} not sent`);
      waiting.splice(0, 1);
      return ended.length < 2;
    },
    async findTenant(id) {
      if (unreadable.has(id)) throw unavailable("This cannot be read.", "storage_damaged");
      return tenants.find((tenant) => tenant.id === id) ?? null;
    },
    webhooks: async () =>
      [{ key: 7, id: "wh_1", name: "Shop", url: "https://shop.example:8443/services/secret?token=secret" }] as Awaited<
        ReturnType<Store["webhooks"]>
      >,
  };
  const log = createLog({
    ...{ level: "debug", format: "json", now: clock.now },
    out: (line) => void lines.push(JSON.parse(line)),
  });
  const outbox = createOutbox({
    ...{ store, clock, log },
    post: {
      async send({ subject, text }, to, id) {
        if (isHanging) await new Promise(() => {});
        if (refusal !== null) throw new Error(refusal);
        posted.push(`${to}: ${subject}`, text, id);
      },
    },
    mayRun: () => posted.length / 3 < most,
    open: (fact) => fact,
    stands: { "disk.low": () => standing["disk.low"], "queue.growing": async () => standing["queue.growing"] },
    context: () => ({ baseUrl: "https://relay.example.com" }),
    onSent: () => {},
    onFailure: () => {},
  });
  const notices = createNotices({
    store,
    clock,
    log,
    operators: ["ops@example.com", "night@example.com"],
    wake: outbox.wake,
  });
  const state = (fact: MailFact): MailState => queued(null, fact, clock.now());
  return {
    ...{ clock, waiting, posted, ended, lines, outbox, notices, state },
    /** The job is another server's once so many mails were sent. */
    loseJobAfter: (mails: number) => (most = mails),
    refuse: (words: string | null) => (refusal = words),
    hang: () => (isHanging = true),
    fill: () => (isFull = true),
    damage: (id: string) => void unreadable.add(id),
    breakStore: (broken: boolean) => (isBroken = broken),
    standing,
    async settle() {
      await notices.flush();
      for (let i = 0; i < 50; i++) await Promise.resolve();
    },
  };
}

const disabled: OwnNews = {
  type: "postrider.webhook.disabled",
  about: { tenantKey: 1, webhookKey: 7 },
  tenantId: "t1",
  fields: { failing_since: "2026-03-01T12:34:56.789Z", disabled_reason: "failing" },
};

test("a webhook that was disabled is told to the account's address, with only the host of its URL", async () => {
  const { outbox, notices, posted, settle } = setUp();
  outbox.start();
  notices.webhook(disabled);
  await settle();
  expect(posted[0]).toBe("ada@example.com: A webhook was disabled: shop.example:8443");
  expect(posted[1]).toContain(
    "- Shop (wh_1 at shop.example:8443) of Ada's shop (t1): every attempt has failed since 2026-03-01 12:34 UTC.",
  );
  expect(posted[1]).not.toContain("secret");
  expect(posted[2]).toMatch(/^<[0-9a-f]{32}@relay\.example\.com>$/);
});

test("other news, and an account without an address, are no mail", async () => {
  const { notices, waiting, settle } = setUp();
  notices.webhook({ ...disabled, type: "postrider.webhook.enabled" });
  notices.webhook({ ...disabled, tenantId: "t2" });
  notices.webhook({ ...disabled, tenantId: "t3" });
  await settle();
  expect(waiting).toEqual([]);
});

test("the operator's addresses are told alike, and that the outbox is full is in the log", async () => {
  const { notices, waiting, fill, lines, settle } = setUp();
  notices.operator("disk.low", { freeBytes: 1, floorBytes: 2 });
  await settle();
  expect(waiting.map(({ recipient }) => recipient)).toEqual(["ops@example.com", "night@example.com"]);
  fill();
  notices.chargeFailed(ada, { amountKobo: 1, reason: "No", retryAt: null, isSuspended: true });
  await settle();
  expect(lines).toMatchObject([{ event: "mail.not_queued", kind: "charge.failed", error: "the outbox is full" }]);
});

test("what is not true any more is not said: an account is gone, or has another address", async () => {
  const { outbox, waiting, posted, ended, state, settle } = setUp();
  const gone = { tenantId: "t9", tenantName: "x" };
  waiting.push({ kind: "charge.failed", recipient: "ada@example.com", state: state(gone) });
  waiting.push({ kind: "charge.failed", recipient: "old@example.com", state: state({ ...gone, tenantId: "t1" }) });
  waiting.push({ kind: "charge.failed", recipient: "ada@example.com", state: { ...state(gone), leftOut: 5 } });
  outbox.start();
  await settle();
  expect(posted).toEqual([]);
  expect(ended).toEqual(Array(3).fill("charge.failed dropped"));
});

test.each([["disk.low"], ["queue.growing"]] as const)("%s is said only while it is so", async (kind) => {
  const { outbox, waiting, posted, ended, state, standing, settle } = setUp();
  const mail = { kind, recipient: "ops@example.com", state: state({}) };
  waiting.push(mail);
  outbox.start();
  await settle();
  standing[kind] = false;
  waiting.push(mail);
  outbox.wake();
  await settle();
  expect(ended).toEqual([`${kind} sent`, `${kind} dropped`]);
  expect(posted).toHaveLength(3);
});

test.each<[string, boolean, (now: number) => MailFact]>([
  ["yesterday is no news", false, (now) => ({ at: now - mailRules.lifetimeMs })],
  ["today is, since whenever the mail has waited", true, (now) => ({ at: now - mailRules.lifetimeMs + 1 })],
  ["when the mail was queued, long ago, is no news", false, () => ({})],
])("how the disk stood %s", async (_, isSaid, factAt) => {
  const { clock, outbox, waiting, ended, settle } = setUp();
  const queuedAt = clock.now();
  clock.advance(10 * mailRules.lifetimeMs);
  const state = { ...queued(null, factAt(clock.now()), queuedAt), queuedAt };
  waiting.push({ kind: "disk.low", recipient: "ops@example.com", state });
  outbox.start();
  await settle();
  expect(ended).toEqual([isSaid ? "disk.low sent" : "disk.low dropped"]);
});

test("a mail whose account cannot be read is tried again later, and keeps no other waiting", async () => {
  const { outbox, notices, waiting, posted, ended, state, damage, settle } = setUp();
  damage("t9");
  waiting.push({
    kind: "charge.failed",
    recipient: "bob@example.com",
    state: state({ tenantId: "t9", tenantName: "x" }),
  });
  notices.webhook(disabled);
  outbox.start();
  await settle();
  expect(ended).toEqual(["charge.failed not sent", "webhook.disabled sent"]);
  expect(posted[0]).toStartWith("ada@example.com: ");
});

test("a server that does not hold the job sends nothing", async () => {
  const { outbox, notices, waiting, posted, settle } = setUp({ holds: false });
  outbox.start();
  notices.webhook(disabled);
  await settle();
  expect([waiting.length, posted.length]).toEqual([1, 0]);
});

test("a server that loses the job sends no more of what it has read, and looks again later", async () => {
  const { clock, outbox, notices, waiting, posted, loseJobAfter, settle } = setUp();
  loseJobAfter(1);
  notices.operator("disk.low", { freeBytes: 1, floorBytes: 2 });
  await notices.flush();
  outbox.start();
  await settle();
  expect([waiting.length, posted.length / 3]).toEqual([1, 1]);
  loseJobAfter(2);
  clock.advance(10_000);
  await settle();
  expect([waiting.length, posted.length / 3]).toEqual([0, 2]);
});

test("a mail that was taken is not sent again while the store cannot note it", async () => {
  const { clock, outbox, notices, posted, ended, breakStore, settle } = setUp();
  breakStore(true);
  outbox.start();
  notices.webhook(disabled);
  for (let n = 0; n < 3; n++) {
    await settle();
    clock.advance(10_000);
  }
  breakStore(false);
  await settle();
  clock.advance(10_000);
  await settle();
  expect(ended).toEqual(["webhook.disabled sent"]);
  expect(posted.filter((line) => line.startsWith("ada@"))).toHaveLength(1);
});

test("whoever stops it again waits no longer for a mail that hangs, and what is started is stopped anew", async () => {
  const { clock, outbox, notices, settle, hang } = setUp();
  hang();
  outbox.start();
  notices.webhook(disabled);
  await settle();
  const begin = () => {
    const stop = { isDone: false };
    void outbox.stop().then(() => {
      stop.isDone = true;
    });
    return stop;
  };
  const first = begin();
  clock.advance(4_999);
  await settle();
  expect(first.isDone).toBe(false);
  const early = begin();
  clock.advance(1);
  await settle();
  const late = begin();
  await settle();
  expect([first, early, late].map(({ isDone }) => isDone)).toEqual([true, true, true]);
  outbox.start();
  const another = begin();
  await settle();
  expect(another.isDone).toBe(false);
});

test("an outage is in the log as it begins and as it ends, and what is given up is named", async () => {
  const { clock, outbox, notices, lines, refuse, settle } = setUp();
  refuse("450 come back later");
  outbox.start();
  notices.operator("queue.growing", { waiting: 1, minutes: 30 });
  await settle();
  refuse(null);
  notices.webhook(disabled);
  await settle();
  clock.advance(10_000);
  await settle();
  expect(lines).toMatchObject([
    { level: "error", event: "mail.failed", kind: "queue.growing", error: "450 come back later" },
    { level: "error", event: "mail.given_up", kind: "queue.growing" },
    { level: "info", event: "mail.recovered", failures: 2 },
  ]);
  expect(JSON.stringify(lines)).not.toContain("@");
  await outbox.stop();
});
