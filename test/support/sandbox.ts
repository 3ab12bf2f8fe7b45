import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CardCharge, VerificationRequest } from "../../src/billing/processor.ts";
import { createSandbox } from "../../src/billing/sandbox/sandbox.ts";
import { openStore } from "../../src/store/open.ts";
import { createFakeClock } from "./fake-clock.ts";

export const cards = {
  good: "4084 0840 8408 4081",
  declined: "4084 0800 0000 5408",
  empty: "4084 0800 0067 0037",
  onceOnly: "5078 5078 5078 5078 12",
  careful: "5192 6027 2058 4796",
  emptyTomorrow: "4000 0000 0000 0341",
} as const;

/** The sandbox on a real database; what it would have posted goes into a list. */
export async function createTestSandbox({
  secret = new Uint8Array(32).fill(7),
  publicUrl = "https://relay.example",
} = {}) {
  const clock = createFakeClock();
  const dataDir = mkdtempSync(join(tmpdir(), "postrider-sandbox-"));
  const { store, sandboxBooks: books } = await openStore({ dataDir, clock });
  const callbacks: { body: Uint8Array; headers: Headers }[] = [];
  const sandbox = createSandbox({
    books,
    clock,
    secret,
    publicUrl: () => publicUrl,
    postCallback: async (body, signature) =>
      void callbacks.push({ body, headers: new Headers({ "x-paystack-signature": signature }) }),
  });
  let references = 0;

  const request = (given: Partial<VerificationRequest> = {}): VerificationRequest => ({
    reference: `ver-${++references}`,
    email: "ops@acme.example",
    amountKobo: 10_000,
    returnUrl: `${publicUrl}/pay/done`,
    cancelUrl: `${publicUrl}/pay/cancelled`,
    ...given,
  });

  return {
    clock,
    store,
    books,
    dataDir,
    sandbox,
    callbacks,
    request,

    /** A hosted page: its reference and the code in its address. */
    async open(given: Partial<VerificationRequest> = {}) {
      const asked = request(given);
      const answer = await sandbox.startVerification(asked);
      if (answer.kind !== "ready") throw new Error(`The page was not made: ${answer.kind}`);
      return { ...asked, url: answer.url, accessCode: answer.url.split("/").at(-1) ?? "" };
    },

    /** Pays on a hosted page with a card, and returns what can be charged from then on. */
    async saveCard(number: string, given: Partial<VerificationRequest> = {}) {
      const page = await this.open(given);
      await sandbox.pay(page.accessCode, number);
      await sandbox.confirm(page.accessCode, true);
      const state = await sandbox.lookUp(page.reference);
      if (state.kind !== "succeeded" || !state.card) throw new Error(`No card was saved: ${state.kind}`);
      return state.card;
    },

    charge: (token: string, given: Partial<CardCharge> = {}) =>
      sandbox.chargeSavedCard({
        reference: `sub-${++references}`,
        token,
        email: "ops@acme.example",
        amountKobo: 250_000,
        returnUrl: `${publicUrl}/pay/done`,
        ...given,
      }),

    async end() {
      await store.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

export type TestSandbox = Awaited<ReturnType<typeof createTestSandbox>>;
