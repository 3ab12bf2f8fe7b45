import { describe, expect, test } from "bun:test";
import type { Outcome } from "../../src/delivery/network/transport.ts";
import { buildRequest } from "../../src/delivery/request.ts";
import { generateSecret, generateSigningKey, importPrivateKey, secretBytes } from "../../src/delivery/signature.ts";
import type { DueDelivery } from "../../src/domain/delivery.ts";
import { type DomainError, unavailable } from "../../src/domain/errors.ts";
import type { InboxAnswer, InboxDelivery } from "../../src/domain/inbox.ts";
import { accountGone } from "../../src/domain/standing.ts";
import type { Tenant } from "../../src/domain/tenant.ts";
import { usualSettings } from "../../src/domain/webhook.ts";
import { createInbox, type InboxDeps } from "../../src/inbox/inbox.ts";
import { encodeEventId } from "../../src/lib/id.ts";
import { createLog } from "../../src/lib/log.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const eventSeq = Date.UTC(2026, 0, 15) * 2048;
const material = {
  keyId: "sk_1",
  privateKey: importPrivateKey(generateSigningKey().privateSeed),
  secrets: [secretBytes(generateSecret())],
};
const tenant: Tenant = {
  key: 7,
  id: "t0000000000007",
  name: "Ada",
  email: "ada@example.com",
  tier: "free",
  enforcedTier: "free",
  passwordHash: "",
  sessionVersion: 1,
  createdAt: 0,
  operatorSuspendedAt: null,
  paymentSuspendedAt: null,
  pastDueAt: null,
  ownEventsPerMonth: null,
  ownWebhooks: null,
  ownRetentionDays: null,
  ownPayloadDays: null,
  ownStorageBytes: null,
  storageFullAt: null,
};

function requestOf({ deliveryKey = 1 }: Partial<DueDelivery> = {}) {
  const delivery: DueDelivery = {
    deliveryKey,
    tenantKey: tenant.key,
    tenantId: tenant.id,
    tier: "free",
    webhookKey: 1,
    url: "https://relay.example:8443/inbox/x",
    limits: usualSettings,
    sealedHeaders: null,
    eventSeq,
    eventId: encodeEventId(eventSeq, new Uint8Array([0x80, 1, 2, 3, 4, 5, 6, 7])),
    payload: Buffer.from('{ "a" : 1.0, "ä":"€" }'),
    trace: null,
    run: 1,
    attemptsInRun: 0,
    attempts: 0,
    replayKey: null,
    replayGroupId: "again",
    orderHash: null,
  };
  return buildRequest(delivery, material, Date.UTC(2026, 0, 15));
}

/** An inbox whose store is this test, with time that stands still. */
function setUp(told: Partial<InboxAnswer> | null = null, deps: Partial<InboxDeps["store"]> = {}) {
  const clock = createFakeClock();
  const kept: InboxDelivery[] = [];
  const announced: Tenant[] = [];
  const lines: string[] = [];
  const inbox = createInbox({
    clock,
    log: createLog({ level: "debug", format: "json", now: () => 0, out: (line) => void lines.push(line) }),
    announce: (whose) => void announced.push(whose),
    store: {
      inboxAnswer: async () => told && { status: 204, delayMs: 0, silent: false, ...told },
      async keepInboxDelivery(_tenantKey, delivery, limit) {
        kept.push(delivery);
        expect(limit).toBe(100);
        return tenant;
      },
      ...deps,
    },
  });
  return { clock, inbox, kept, announced, lines };
}

/** Lets everything run that waits for nothing but its turn. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

const textOf = (outcome: Outcome) =>
  outcome.kind === "responded" ? Buffer.from(outcome.body.received()).toString() : null;

/** A signal that counts who listens to it. */
function countingSignal() {
  const controller = new AbortController();
  const { signal } = controller;
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...given: Parameters<typeof add>) => {
    listeners += 1;
    add(...given);
  };
  signal.removeEventListener = (...given: Parameters<typeof remove>) => {
    listeners -= 1;
    remove(...given);
  };
  return { signal, abort: () => controller.abort(), listeners: () => listeners };
}

describe("what an inbox keeps", () => {
  test("is the request with all its headers and the very bytes of its body", async () => {
    const { inbox, kept, clock } = setUp();
    const request = requestOf();
    await inbox.receive(request);
    expect(kept).toEqual([
      {
        id: expect.stringMatching(/^ibx_[0-9a-z]{26}$/),
        receivedAt: clock.now(),
        eventId: request.delivery.eventId,
        headers: {
          Host: "relay.example:8443",
          ...request.headers,
          "Content-Length": String(request.body.length),
        },
        body: request.body,
        answeredStatus: 204,
        isTest: false,
      },
    ]);
    expect(kept[0]?.headers["Service-Replay-Group"]).toBe("again");
  });

  test.each([
    [null, 204],
    [{ status: 503 }, 503],
    [{ status: 200, delayMs: 9_999 }, 200],
    [{ status: 200, delayMs: 10_000 }, null],
    [{ status: 200, silent: true }, null],
  ])("told to answer %j, it notes %p", async (told, status) => {
    const { inbox, kept } = setUp(told);
    void inbox.receive(requestOf());
    await settle();
    expect(kept.map(({ answeredStatus }) => answeredStatus)).toEqual([status]);
  });

  test("is kept before it is answered", async () => {
    const stored = Promise.withResolvers<Tenant>();
    const { inbox } = setUp(null, { keepInboxDelivery: () => stored.promise });
    const outcome = inbox.receive(requestOf());
    await settle();
    expect(Bun.peek.status(outcome)).toBe("pending");
    stored.resolve(tenant);
    expect((await outcome).kind).toBe("responded");
  });
});

describe("an answer", () => {
  test.each([
    [200, true],
    [204, false],
    [205, false],
    [304, false],
    [404, true],
    [599, true],
  ])("%i has a body that names the delivery: %p", async (status, hasBody) => {
    const { inbox, kept } = setUp({ status });
    const outcome = await inbox.receive(requestOf());
    expect(outcome).toMatchObject({ kind: "responded", status, retryAfter: undefined, durationMs: 0 });
    expect(textOf(outcome)).toBe(hasBody ? JSON.stringify({ inbox: kept[0]?.id }) : "");
    if (outcome.kind === "responded") await outcome.body.done;
  });

  test("comes after its delay, by the clock, and leaves no timer", async () => {
    const { inbox, clock } = setUp({ status: 201, delayMs: 9_999 });
    const outcome = inbox.receive(requestOf());
    await settle();
    clock.advance(9_998);
    await settle();
    expect(Bun.peek.status(outcome)).toBe("pending");
    clock.advance(1);
    expect(await outcome).toMatchObject({ kind: "responded", status: 201, durationMs: 9_999 });
    expect(clock.timers).toBe(0);
  });

  test.each([{ delayMs: 10_000 }, { delayMs: 15_000 }, { silent: true }, { silent: true, delayMs: 5 }])(
    "that is told to be %j is none within 10 s",
    async (told) => {
      const { inbox, clock, kept } = setUp({ status: 200, ...told });
      const outcome = inbox.receive(requestOf());
      await settle();
      clock.advance(9_999);
      await settle();
      expect(Bun.peek.status(outcome)).toBe("pending");
      clock.advance(1);
      expect(await outcome).toEqual({ kind: "no-response", cause: "timeout", durationMs: 10_000 });
      expect([kept.length, clock.timers]).toEqual([1, 0]);
    },
  );

  test("that waits for a store that does not answer is none within 10 s, and nothing comes after it", async () => {
    const stored = Promise.withResolvers<Tenant>();
    const { inbox, clock } = setUp({ delayMs: 50 }, { keepInboxDelivery: () => stored.promise });
    const outcome = inbox.receive(requestOf());
    await settle();
    clock.advance(10_000);
    expect(await outcome).toMatchObject({ kind: "no-response", cause: "timeout" });
    stored.resolve(tenant);
    await settle();
    expect(clock.timers).toBe(0);
  });
});

describe("an attempt that is broken off", () => {
  test.each([{ silent: true }, { delayMs: 500 }])("by its signal ends at once (%j)", async (told) => {
    const { inbox, clock } = setUp(told);
    const { signal, abort, listeners } = countingSignal();
    const outcome = inbox.receive(requestOf(), signal);
    await settle();
    clock.advance(20);
    abort();
    expect(await outcome).toEqual({ kind: "no-response", cause: "interrupted", durationMs: 20 });
    expect([clock.timers, listeners()]).toEqual([0, 0]);
  });

  test("by the close ends at once, and so do later ones, of which nothing is kept", async () => {
    const { inbox, clock, kept } = setUp({ silent: true });
    const outcomes = [inbox.receive(requestOf()), inbox.receive(requestOf())];
    await settle();
    inbox.close();
    const aborted = { kind: "no-response", cause: "interrupted" };
    expect(await Promise.all(outcomes)).toMatchObject([aborted, aborted]);
    expect(await inbox.receive(requestOf())).toMatchObject(aborted);
    expect([kept.length, clock.timers]).toEqual([2, 0]);
  });

  test("before it began is not kept", async () => {
    const { inbox, kept } = setUp();
    expect(await inbox.receive(requestOf(), AbortSignal.abort())).toMatchObject({ cause: "interrupted" });
    expect(kept).toEqual([]);
  });

  test("an answered one leaves no timer and no listener behind", async () => {
    const { inbox, clock } = setUp();
    const { signal, listeners } = countingSignal();
    await inbox.receive(requestOf(), signal);
    expect([clock.timers, listeners()]).toEqual([0, 0]);
  });
});

describe("a store that refuses", () => {
  const refusing = (error: DomainError | Error) => ({ keepInboxDelivery: () => Promise.reject(error) });

  test("for want of room is answered 503 at once, with what the store says", async () => {
    const full = unavailable("The server's disk is full; retry later.", "storage_full", 5);
    const { inbox, announced, clock } = setUp({ status: 204, delayMs: 500 }, refusing(full));
    const outcome = await inbox.receive(requestOf());
    expect(outcome).toMatchObject({ kind: "responded", status: 503 });
    expect(JSON.parse(textOf(outcome) ?? "")).toEqual({ message: full.message, code: "storage_full" });
    expect([announced.length, clock.timers]).toEqual([0, 0]);
  });

  test("because the account is gone breaks the attempt off", async () => {
    const { inbox } = setUp(null, refusing(accountGone()));
    expect(await inbox.receive(requestOf())).toMatchObject({ kind: "no-response", cause: "interrupted" });
  });

  test.each(["inboxAnswer", "keepInboxDelivery"] as const)("by a defect in %s is 500, and logged", async (verb) => {
    const { inbox, lines } = setUp(null, { [verb]: () => Promise.reject(new Error("broken")) });
    expect(await inbox.receive(requestOf())).toMatchObject({ kind: "responded", status: 500 });
    expect(lines.join()).toContain('"inbox.failed"');
    expect(lines.join()).toContain("broken");
  });
});

describe("announced are", () => {
  test.each([
    ["one that is answered at once", null, 1, 0],
    ["one whose answer takes time", { delayMs: 1 }, 1, 1],
    ["one that is never answered", { silent: true }, 1, 1],
    ["a test, which no attempt announces", null, 0, 1],
  ])("%s", async (_, told, deliveryKey, times) => {
    const { inbox, announced, kept } = setUp(told);
    void inbox.receive(requestOf({ deliveryKey }));
    await settle();
    expect(announced).toEqual(Array(times).fill(tenant));
    expect(kept.map(({ isTest }) => isTest)).toEqual([deliveryKey === 0]);
  });
});
