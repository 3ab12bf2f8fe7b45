import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { SandboxCard, SandboxTransaction } from "../../../src/store/sandbox-books.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { createWorld, refusalOf, type World } from "../../support/store-factory.ts";

const newTransaction = (given: Partial<SandboxTransaction> = {}): SandboxTransaction => ({
  reference: "ver-1",
  accessCode: `code of ${given.reference ?? "ver-1"}`,
  state: "waiting",
  email: "me@example.com",
  amountKobo: 10_000,
  returnUrl: "https://relay.example/pay/done",
  cancelUrl: "https://relay.example/pay/cancelled",
  cardToken: null,
  reason: null,
  createdAt: 1_000,
  paidAt: null,
  ...given,
});

const newCard = (given: Partial<SandboxCard> = {}): SandboxCard => ({
  token: "SBX_AUTH_1",
  email: "me@example.com",
  signature: "SBX_SIG_1",
  brand: "visa",
  last4: "4081",
  expMonth: "12",
  expYear: "2031",
  reusable: true,
  later: "pays",
  forgotten: false,
  ...given,
});

const paid = { state: "paid", cardToken: "SBX_AUTH_1", reason: null, paidAt: 2_000 } as const;

/** The text of `src/store/sandbox-books.ts` as tests. */
export function sandboxBooksContract(backend: StoreBackend): void {
  describe(`${backend.name} remembers for the sandbox:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());
    const find = (reference = "ver-1") => world.sandboxBooks.findTransaction({ reference });

    test("a transaction is found by reference and by access code as it was made, also after a restart", async () => {
      const made = newTransaction({ cardToken: "SBX_AUTH_1", reason: "Declined", paidAt: 5 });
      expect(await world.sandboxBooks.addTransaction(made)).toBe(true);
      await world.reopen();
      expect(await find()).toEqual(made);
      expect(await world.sandboxBooks.findTransaction({ accessCode: made.accessCode })).toEqual(made);
      expect(await find("ver-2")).toBeNull();
      expect(await world.sandboxBooks.findTransaction({ accessCode: "ver-1" })).toBeNull();
    });

    test("a reference is used once, also by two who come together", async () => {
      const made = [newTransaction(), newTransaction({ accessCode: "another", amountKobo: 1 })];
      const added = await Promise.all(made.map((transaction) => world.sandboxBooks.addTransaction(transaction)));
      expect(added.filter((isNew) => isNew)).toHaveLength(1);
      for (const transaction of made) expect(await world.sandboxBooks.addTransaction(transaction)).toBe(false);
      expect(await find()).toEqual(made[added.indexOf(true)] ?? null);
    });

    test("a move takes the card along and leaves the rest", async () => {
      await world.sandboxBooks.addTransaction(newTransaction());
      await world.sandboxBooks.addTransaction(newTransaction({ reference: "ver-2" }));
      expect(await world.sandboxBooks.moveTransaction("ver-1", ["waiting", "failed"], paid, newCard())).toBe(true);
      expect(await find()).toEqual(newTransaction(paid));
      expect(await find("ver-2")).toEqual(newTransaction({ reference: "ver-2" }));
      expect(await world.sandboxBooks.findCard("SBX_AUTH_1")).toEqual(newCard());
    });

    test("a move from another state does nothing, and no card is kept", async () => {
      await world.sandboxBooks.addTransaction(newTransaction({ state: "reversed" }));
      expect(await world.sandboxBooks.moveTransaction("ver-1", ["waiting", "failed"], paid, newCard())).toBe(false);
      expect(await world.sandboxBooks.moveTransaction("ver-2", ["waiting"], paid, newCard())).toBe(false);
      expect(await find()).toEqual(newTransaction({ state: "reversed" }));
      expect(await world.sandboxBooks.findCard("SBX_AUTH_1")).toBeNull();
    });

    test("of two moves that come together one counts", async () => {
      await world.sandboxBooks.addTransaction(newTransaction());
      const tokens = ["SBX_AUTH_1", "SBX_AUTH_2"];
      const moves = tokens.map((token) =>
        world.sandboxBooks.moveTransaction("ver-1", ["waiting"], { ...paid, cardToken: token }, newCard({ token })),
      );
      const moved = await Promise.all(moves);
      expect(moved.filter((isMoved) => isMoved)).toHaveLength(1);
      expect((await find())?.cardToken).toBe(tokens[moved.indexOf(true)] ?? "");
      expect(await world.sandboxBooks.findCard(tokens[moved.indexOf(false)] ?? "")).toBeNull();
    });

    test.each(["pays", "declines", "asks"] as const)("a card that %s is found as it was made", async (later) => {
      const card = newCard({ later, reusable: later === "pays" });
      await world.sandboxBooks.addTransaction(newTransaction());
      await world.sandboxBooks.moveTransaction("ver-1", ["waiting"], paid, card);
      await world.reopen();
      expect(await world.sandboxBooks.findCard(card.token)).toEqual(card);
    });

    test("a forgotten card is known as such; to forget an unknown one does nothing", async () => {
      await world.sandboxBooks.addTransaction(newTransaction());
      await world.sandboxBooks.moveTransaction("ver-1", ["waiting"], paid, newCard());
      await world.sandboxBooks.forgetCard("SBX_AUTH_2");
      expect(await world.sandboxBooks.findCard("SBX_AUTH_1")).toEqual(newCard());
      await world.sandboxBooks.forgetCard("SBX_AUTH_1");
      await world.sandboxBooks.forgetCard("SBX_AUTH_1");
      expect(await world.sandboxBooks.findCard("SBX_AUTH_1")).toEqual(newCard({ forgotten: true }));
    });

    test("all of it outlives the tenants, and writes end with the store", async () => {
      await world.sandboxBooks.addTransaction(newTransaction());
      const tenant = await world.tenant();
      await world.store.deleteTenant(tenant.key, 1);
      while (await world.store.eraseDeleted(100));
      expect(await find()).toEqual(newTransaction());
      await world.store.close();
      expect(await refusalOf(world.sandboxBooks.forgetCard("SBX_AUTH_1"))).toBe("unavailable shutting_down");
    });
  });
}
