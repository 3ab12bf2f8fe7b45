import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Rejected } from "../../../src/billing/processor.ts";
import { testCards } from "../../../src/billing/sandbox/cards.ts";
import { cards, createTestSandbox, type TestSandbox } from "../../support/sandbox.ts";

let world: TestSandbox;
beforeEach(async () => {
  world = await createTestSandbox();
});
afterEach(() => world.end());

const stateOf = (reference: string) => world.sandbox.lookUp(reference);
const rejectedAs = (retry: Rejected["retry"]): Rejected => ({
  kind: "rejected",
  reason: expect.any(String),
  retry,
});
const codeIn = (url: string) => url.match(/sandbox\/(\w+)/)?.[1] ?? "";

describe("a hosted page", () => {
  test("has an address that nobody can guess, and waits for its customer", async () => {
    const [one, other] = [await world.open(), await world.open()];
    expect(one.url).toMatch(/^https:\/\/relay\.example\/pay\/sandbox\/[0-9a-z]{26}$/);
    expect(one.accessCode).not.toBe(other.accessCode);
    expect(await stateOf(one.reference)).toEqual({ kind: "pending", word: "abandoned" });
    expect(await stateOf("ver-none")).toEqual({ kind: "not_found" });
    expect(await world.sandbox.page("none")).toBeNull();
    expect(await world.sandbox.pay("none", cards.good)).toBeNull();
    expect(await world.sandbox.confirm("none", true)).toBeNull();
  });

  test("is made once for a reference", async () => {
    const page = await world.open();
    expect(await world.sandbox.startVerification(page)).toEqual({ kind: "duplicate" });
    expect(await world.charge("any", { reference: page.reference })).toEqual({ kind: "duplicate" });
    const charge = { reference: "sub-x" };
    const token = (await world.saveCard(cards.good)).token;
    await world.charge(token, charge);
    expect(await world.sandbox.startVerification(world.request(charge))).toEqual({ kind: "duplicate" });
  });

  test.each([
    ["a reference that the real processor would not take", { reference: "ver_1" }],
    ["no amount", { amountKobo: 0 }],
    ["half a kobo", { amountKobo: 0.5 }],
    ["an address that is none", { returnUrl: "done" }],
    ["an address that is a script", { cancelUrl: "javascript:alert(1)" }],
  ])("is refused for %s", async (_, given) => {
    const request = world.request(given);
    expect(await world.sandbox.startVerification(request)).toEqual(rejectedAs("operator"));
    expect(await stateOf(request.reference)).toEqual({ kind: "not_found" });
  });

  test("that a good card pays has succeeded, with a card to charge again", async () => {
    const { accessCode, reference } = await world.open();
    const answer = await world.sandbox.pay(accessCode, "4084084084084081");
    expect(answer).toMatchObject({ problem: null, page: { state: "paid" } });
    expect(answer?.page.returnUrl).toBe(`https://relay.example/pay/done?trxref=${reference}&reference=${reference}`);
    const state = await stateOf(reference);
    expect(state).toEqual({
      kind: "succeeded",
      reference,
      amountKobo: 10_000,
      requestedKobo: 10_000,
      currency: "NGN",
      mode: "test",
      transactionId: expect.any(String),
      card: {
        token: expect.stringMatching(/^SBX_AUTH_[0-9a-z]{26}$/),
        email: "ops@acme.example",
        signature: expect.stringMatching(/^SBX_SIG_[0-9a-f]{32}$/),
        brand: "visa",
        last4: "4081",
        expMonth: "12",
        expYear: "2030",
      },
    });
    expect(await stateOf(reference)).toEqual(state);
  });

  test.each([
    ["that declines", cards.declined, "Declined"],
    ["without money", cards.empty, "Insufficient funds"],
  ])("stays usable after a card %s, which fails with a reason", async (_, number, reason) => {
    const { accessCode, reference } = await world.open();
    expect(await world.sandbox.pay(accessCode, number)).toMatchObject({ page: { state: "failed", reason } });
    expect(await stateOf(reference)).toEqual({ kind: "failed", reason, retry: "later" });
    expect(world.callbacks).toEqual([]);
    expect(await world.sandbox.pay(accessCode, cards.good)).toMatchObject({ page: { state: "paid", reason: null } });
    expect(await stateOf(reference)).toMatchObject({ kind: "succeeded" });
    expect(world.callbacks).toHaveLength(1);
  });

  test("is paid once, whatever is sent afterwards or at the same time", async () => {
    const { accessCode, reference } = await world.open();
    await Promise.all([cards.good, cards.emptyTomorrow].map((card) => world.sandbox.pay(accessCode, card)));
    const paid = await stateOf(reference);
    for (const card of Object.values(cards)) {
      expect(await world.sandbox.pay(accessCode, card)).toMatchObject({ page: { state: "paid" }, problem: null });
    }
    await world.sandbox.confirm(accessCode, false);
    expect(await stateOf(reference)).toEqual(paid);
    expect(world.callbacks).toHaveLength(1);
  });

  test("that a card pays which cannot be charged again has succeeded without one", async () => {
    const { accessCode, reference } = await world.open();
    await world.sandbox.pay(accessCode, cards.onceOnly);
    expect(await stateOf(reference)).toMatchObject({ kind: "succeeded", card: null });
  });

  test("makes a new token each time; the signature is the card's, and only on this server", async () => {
    const mine = await world.saveCard(cards.good);
    const again = await world.saveCard(cards.good, { email: "else@acme.example" });
    const other = await world.saveCard(cards.emptyTomorrow);
    expect(again.token).not.toBe(mine.token);
    expect(again.signature).toBe(mine.signature);
    expect(other.signature).not.toBe(mine.signature);
    const elsewhere = await createTestSandbox({ secret: new Uint8Array(32).fill(8) });
    expect((await elsewhere.saveCard(cards.good)).signature).not.toBe(mine.signature);
    await elsewhere.end();
  });

  test.each([
    ["", "Pick a test card or enter its number"],
    ["   ", "Pick a test card or enter its number"],
    ["4084-0840-8408-4081", "A card number consists of digits and spaces only"],
    ["٤٠٨٤", "A card number consists of digits and spaces only"],
    ["1".repeat(20), "A card number has at most 19 digits"],
    ["4111 1111 1111 1111", "This is a sandbox: pick one of the test cards"],
    ["408408408408408", "This is a sandbox: pick one of the test cards"],
  ])("takes no number like %p, and nothing comes of it", async (number, problem) => {
    const { accessCode, reference } = await world.open();
    expect(await world.sandbox.pay(accessCode, number)).toMatchObject({ problem, page: { state: "waiting" } });
    expect(await stateOf(reference)).toMatchObject({ kind: "pending" });
  });

  test("leaves no number of a card on the disk", async () => {
    for (const { number } of testCards) {
      const { accessCode } = await world.open();
      await world.sandbox.pay(accessCode, number);
      await world.sandbox.pay(accessCode, "4111 1111 1111 1111");
    }
    await world.store.close();
    const files = readdirSync(world.dataDir).map((name) => readFileSync(join(world.dataDir, name), "latin1"));
    const stored = files.join("\n");
    expect(stored).toContain("ops@acme.example");
    for (const number of [...testCards.map((card) => card.number), "4111 1111 1111 1111"]) {
      expect(stored).not.toContain(number);
      expect(stored).not.toContain(number.replaceAll(" ", ""));
    }
  });
});

describe("a careful bank", () => {
  test("asks the customer of a hosted page, who confirms", async () => {
    const { accessCode, reference } = await world.open();
    expect(await world.sandbox.pay(accessCode, cards.careful)).toMatchObject({
      page: { kind: "hosted", state: "confirming", last4: "4796" },
    });
    expect(await stateOf(reference)).toEqual({ kind: "pending", word: "ongoing" });
    expect(world.callbacks).toEqual([]);
    expect(await world.sandbox.confirm(accessCode, true)).toMatchObject({ page: { state: "paid" } });
    expect(await stateOf(reference)).toMatchObject({ kind: "succeeded", card: { brand: "mastercard" } });
    expect(world.callbacks).toHaveLength(1);
  });

  test("that hears no leaves the page for another card", async () => {
    const { accessCode, reference } = await world.open();
    await world.sandbox.pay(accessCode, cards.careful);
    await world.sandbox.confirm(accessCode, false);
    expect(await stateOf(reference)).toEqual({ kind: "failed", reason: "Not confirmed", retry: "later" });
    await world.sandbox.confirm(accessCode, true);
    expect(await stateOf(reference)).toMatchObject({ kind: "failed" });
    await world.sandbox.pay(accessCode, cards.good);
    expect(await stateOf(reference)).toMatchObject({ kind: "succeeded" });
  });

  test("is left by a customer who takes another card", async () => {
    const { accessCode, reference } = await world.open();
    await world.sandbox.pay(accessCode, cards.careful);
    await world.sandbox.pay(accessCode, cards.good);
    expect(await stateOf(reference)).toMatchObject({ kind: "succeeded", card: { last4: "4081" } });
  });

  test.each([
    [true, { kind: "succeeded", amountKobo: 250_000 }],
    [false, { kind: "failed", reason: "Not confirmed" }],
  ] as const)("asks again at each later charge (answer: %p)", async (yes, expected) => {
    const { token } = await world.saveCard(cards.careful);
    const answer = await world.charge(token, { reference: "sub-a" });
    const asked = await stateOf("sub-a");
    expect(answer).toEqual({ kind: "state", state: asked } as typeof answer);
    expect(asked).toEqual({
      kind: "confirmation",
      url: expect.stringMatching(/^https:\/\/relay\.example\/pay\/sandbox\/\w{26}\/confirm$/),
    });
    const accessCode = asked.kind === "confirmation" ? codeIn(asked.url) : "";
    // No other card can pay for the one that was charged.
    expect(await world.sandbox.pay(accessCode, cards.good)).toMatchObject({ page: { state: "confirming" } });
    const told = world.callbacks.length;
    await world.sandbox.confirm(accessCode, yes);
    expect(await stateOf("sub-a")).toMatchObject(expected);
    expect(world.callbacks).toHaveLength(told + (yes ? 1 : 0));
    await world.sandbox.confirm(accessCode, !yes);
    expect(await stateOf("sub-a")).toMatchObject(expected);
  });
});
