import { createHmac, hkdfSync } from "node:crypto";
import { isUnavailable } from "../../domain/errors.ts";
import type { Clock } from "../../lib/clock.ts";
import { newToken } from "../../lib/id.ts";
import type { SandboxBooks, SandboxCard, SandboxTransaction } from "../../store/sandbox-books.ts";
import type { ChargeState, PaymentProcessor, Unknown } from "../processor.ts";
import { createCallbacks } from "./callbacks.ts";
import { findTestCard, type TestCard } from "./cards.ts";
import {
  chargedLater,
  confirming,
  failed,
  isHosted,
  isPayable,
  isRefusedEmail,
  noCancelUrl,
  paid,
  payable,
  refusalOf,
  rejected,
  succeeded,
  withReference,
} from "./transactions.ts";

/** The built-in processor, and what its pages do with it. */
export interface Sandbox extends PaymentProcessor {
  readonly name: "sandbox";
  readonly mode: "test";
  /** What a customer sees at an address with this code; null when nothing was ever there. */
  page(accessCode: string): Promise<SandboxPage | null>;
  /** The customer pays on the hosted page, with the number of a test card. Null when there is no such page. */
  pay(accessCode: string, number: string): Promise<PageAnswer | null>;
  /** The customer answers the bank. Null when there is no such page. */
  confirm(accessCode: string, yes: boolean): Promise<PageAnswer | null>;
}

/**
 * One payment as its customer meets it.
 *
 *   hosted page:      waiting ──good card──▶ paid ──▶ reversed        charge of a saved card:
 *                      │   ▲                  ▲                        ┌──────────▶ paid ──▶ reversed
 *                      │   └─declined: failed─┤                        ├─asks──▶ confirming ──no──▶ failed
 *                      └─asks──▶ confirming ──┘                        └──────────▶ failed
 */
export interface SandboxPage {
  readonly accessCode: string;
  /** A hosted page takes any card, and another one after a decline; a saved card's page can only confirm or refuse. */
  readonly kind: "hosted" | "saved_card";
  readonly state: SandboxTransaction["state"];
  readonly amountKobo: number;
  /** Why the last try failed. */
  readonly reason: string | null;
  /** The last digits of the card that awaits confirmation. */
  readonly last4: string | null;
  /** Where the browser goes in the end, with the reference added. */
  readonly returnUrl: string;
  /** Null for a charge of a saved card, which only the answer to the bank can end. */
  readonly cancelUrl: string | null;
}

/**
 * `problem`: what was sent had no effect, and why. `page` is the page afterwards; its state says what became of the
 * payment.
 */
export interface PageAnswer {
  readonly page: SandboxPage;
  readonly problem: string | null;
}

export interface SandboxDeps {
  books: SandboxBooks;
  clock: Pick<Clock, "now">;
  /** 32 bytes. Signs the callbacks, and the numbers of cards, so that the same card can be recognized. */
  secret: Uint8Array;
  /** Where browsers reach this program, without a trailing slash. */
  publicUrl(): string;
  /** Starts to deliver a callback. Must not reject. */
  postCallback(body: Uint8Array, signature: string): Promise<void>;
}

/** How long a card is valid. */
const cardYears = 4;

export function createSandbox({ books, clock, secret, publicUrl, postCallback }: SandboxDeps): Sandbox {
  if (secret.length !== 32) throw new Error(`The secret of the sandbox must be 32 bytes, not ${secret.length}`);
  const derive = (label: string) => new Uint8Array(hkdfSync("sha256", secret, "", `postrider sandbox ${label}`, 32));
  const callbacks = createCallbacks(derive("callbacks"));
  const cardSecret = derive("card signatures");

  const findByReference = (reference: string) => books.findTransaction({ reference });
  const findByAccessCode = (accessCode: string) => books.findTransaction({ accessCode });
  const cardOf = async ({ cardToken }: SandboxTransaction) => (cardToken ? books.findCard(cardToken) : null);

  function newCard({ brand, reusable, later }: TestCard, digits: string, email: string): SandboxCard {
    return {
      // A new token each time, as Paystack does it; the signature tells when two are for the same card.
      token: `SBX_AUTH_${newToken(130)}`,
      signature: `SBX_SIG_${createHmac("sha256", cardSecret).update(digits).digest("hex").slice(0, 32)}`,
      email,
      brand,
      reusable,
      later,
      last4: digits.slice(-4),
      expMonth: "12",
      expYear: String(new Date(clock.now()).getUTCFullYear() + cardYears),
      forgotten: false,
    };
  }

  function newTransaction(
    request: Pick<SandboxTransaction, "reference" | "email" | "amountKobo" | "returnUrl" | "cancelUrl">,
  ): SandboxTransaction {
    const { reference, email, amountKobo, returnUrl, cancelUrl } = request;
    return {
      reference,
      email,
      amountKobo,
      returnUrl,
      cancelUrl,
      accessCode: newToken(130),
      state: "waiting",
      cardToken: null,
      reason: null,
      createdAt: clock.now(),
      paidAt: null,
    };
  }

  /** Announces a payment; the transaction need not wait for it. */
  async function announce(reference: string): Promise<void> {
    const transaction = await findByReference(reference);
    if (!transaction) return;
    const { body, signature } = callbacks.write(transaction);
    void postCallback(body, signature);
  }

  async function stateOf(transaction: SandboxTransaction): Promise<ChargeState> {
    switch (transaction.state) {
      case "waiting":
        // Paystack's word for a payment that nobody has finished (or begun).
        return { kind: "pending", word: "abandoned" };
      case "confirming":
        if (isHosted(transaction)) return { kind: "pending", word: "ongoing" };
        return { kind: "confirmation", url: `${pageUrl(transaction)}/confirm` };
      case "failed":
        return { kind: "failed", reason: transaction.reason ?? "Declined", retry: "later" };
      case "reversed":
        return { kind: "reversed" };
      case "paid":
        return succeeded(transaction, await cardOf(transaction));
    }
  }

  const pageUrl = ({ accessCode }: SandboxTransaction) => `${publicUrl()}/pay/sandbox/${accessCode}`;

  async function pageOf(transaction: SandboxTransaction): Promise<SandboxPage> {
    const { accessCode, state, amountKobo, reason, cancelUrl } = transaction;
    const card = state === "confirming" ? await cardOf(transaction) : null;
    const hosted = isHosted(transaction);
    return {
      accessCode,
      kind: hosted ? "hosted" : "saved_card",
      state,
      amountKobo,
      reason,
      last4: card?.last4 ?? null,
      returnUrl: withReference(transaction),
      cancelUrl: hosted ? cancelUrl : null,
    };
  }

  async function answer(accessCode: string, problem: string | null = null): Promise<PageAnswer | null> {
    const transaction = await findByAccessCode(accessCode);
    return transaction && { page: await pageOf(transaction), problem };
  }

  return {
    name: "sandbox",
    mode: "test",
    chargesPerSecond: 1_000,

    startVerification: (request) =>
      orUnknown(async () => {
        const refusal = refusalOf(request, [request.returnUrl, request.cancelUrl]);
        if (refusal) return refusal;
        if (isRefusedEmail(request.email)) {
          return { kind: "email_refused", reason: "The sandbox refuses every e-mail address at refused.example" };
        }
        const transaction = newTransaction(request);
        if (!(await books.addTransaction(transaction))) return { kind: "duplicate" };
        return { kind: "ready", url: pageUrl(transaction) };
      }),

    lookUp: (reference) =>
      orUnknown(async () => {
        const transaction = await findByReference(reference);
        return transaction ? await stateOf(transaction) : { kind: "not_found" };
      }),

    chargeSavedCard: (request) =>
      orUnknown(async () => {
        const refusal = refusalOf(request, [request.returnUrl]);
        if (refusal) return refusal;
        // Checked first: a retry must not be told that the card is gone when the charge was made.
        if (await findByReference(request.reference)) return { kind: "duplicate" };
        const card = await books.findCard(request.token);
        if (!card || card.forgotten) return rejected("The card is unknown or has been forgotten", "new_card");
        if (!card.reusable) return rejected("The card cannot be charged again", "new_card");
        if (card.email !== request.email) return rejected("The card belongs to another e-mail address", "new_card");
        const transaction: SandboxTransaction = {
          ...newTransaction({ ...request, cancelUrl: noCancelUrl }),
          ...chargedLater(card, clock.now()),
        };
        if (!(await books.addTransaction(transaction))) return { kind: "duplicate" };
        if (transaction.state === "paid") await announce(transaction.reference);
        return { kind: "state", state: await stateOf(transaction) };
      }),

    refund: ({ reference, amountKobo }) =>
      orUnknown(async () => {
        const transaction = await findByReference(reference);
        if (!transaction) return rejected("There is no such transaction", "operator");
        if (transaction.amountKobo !== amountKobo) return rejected("Only the whole amount can be refunded", "operator");
        const reversed = { ...transaction, state: "reversed" } as const;
        if (await books.moveTransaction(reference, ["paid"], reversed)) return { kind: "accepted" };
        const { state } = (await findByReference(reference)) ?? transaction;
        if (state === "reversed") return { kind: "already_refunded" };
        return rejected("The transaction has not been paid", "operator");
      }),

    readCallback: callbacks.read,

    forgetCard: (token) =>
      orUnknown(async () => {
        await books.forgetCard(token);
        return { kind: "forgotten" };
      }),

    async page(accessCode) {
      const transaction = await findByAccessCode(accessCode);
      return transaction && pageOf(transaction);
    },

    async pay(accessCode, number) {
      const transaction = await findByAccessCode(accessCode);
      if (!transaction) return null;
      // A customer who pays twice sees the first payment, whatever the second card is.
      if (!isPayable(transaction)) return answer(accessCode);
      const found = findTestCard(number);
      if ("problem" in found) return answer(accessCode, found.problem);
      const { reference, email } = transaction;
      const { now } = found.card;
      if (now.kind === "declines") {
        await books.moveTransaction(reference, payable, failed(now.reason));
        return answer(accessCode);
      }
      const card = newCard(found.card, found.digits, email);
      const to = now.kind === "asks" ? confirming(card.token) : paid(card.token, clock.now());
      const moved = await books.moveTransaction(reference, payable, to, card);
      if (moved && to.state === "paid") await announce(reference);
      return answer(accessCode);
    },

    async confirm(accessCode, yes) {
      const transaction = await findByAccessCode(accessCode);
      if (!transaction) return null;
      const { reference, cardToken } = transaction;
      const to = yes ? paid(cardToken, clock.now()) : failed("Not confirmed");
      const moved = await books.moveTransaction(reference, ["confirming"], to);
      if (moved && yes) await announce(reference);
      return answer(accessCode);
    },
  };
}

/** To the caller, a store that does not answer is a processor that does not. */
async function orUnknown<T>(work: () => Promise<T>): Promise<T | Unknown> {
  try {
    return await work();
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    const { message: reason, retryAfterSeconds } = error;
    return { kind: "unknown", reason, ...(retryAfterSeconds && { retryAfterMs: retryAfterSeconds * 1_000 }) };
  }
}
