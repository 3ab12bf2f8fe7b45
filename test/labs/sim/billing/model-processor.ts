import type {
  ChargeAnswer,
  ChargeableCard,
  ChargeState,
  PaymentProcessor,
  Unknown,
} from "../../../../src/billing/processor.ts";
import type { Random } from "../../../../src/lib/random.ts";

/** What a card does when it is charged while its owner is away. */
export type Behaviour = "pays" | "declines" | "refused" | "asks" | "waits";

export interface ModelTransaction {
  readonly reference: string;
  readonly kind: "page" | "card";
  readonly email: string;
  readonly askedKobo: number;
  readonly at: number;
  state: "waiting" | "confirming" | "pending" | "paid" | "failed" | "reversed";
  paidKobo: number;
  currency: string;
  card: ChargeableCard | null;
}

export interface ModelCard {
  readonly card: ChargeableCard;
  behaviour: Behaviour;
  forgotten: boolean;
}

/** Then the processor closes a page that nobody has paid, and the bank one that nobody has confirmed. */
const pageLifetimeMs = 30 * 24 * 60 * 60 * 1000;

/** What goes wrong with a call. `late`: the answer is lost and the effect comes some minutes after. */
export type Fault = "none" | "lost_request" | "lost_answer" | "late" | "busy" | "broken" | "operator";

/** A month of its faults, those of both adapters: every answer that the seam allows, at every moment. */
export interface ModelOptions {
  random: Random;
  now(): number;
  /** Decides what goes wrong with the next call. */
  fault(): Fault;
  /** Takes the time that a call is under way; other things happen meanwhile. */
  travel(): Promise<void>;
  /** Runs something some minutes later. */
  later(action: () => void): void;
  /** What the next charge of a good card does. */
  mood(): Behaviour;
}

/** A payment processor that keeps its books and loses messages. It is what the invariants are checked against. */
export function createModelProcessor({ random, now, fault, travel, later, mood }: ModelOptions) {
  const transactions = new Map<string, ModelTransaction>();
  const cards = new Map<string, ModelCard>();
  const seen = { charges: 0, declines: 0, refunds: 0 };
  let tokens = 0;

  const lost = (underWay: boolean): Unknown => ({ kind: "unknown", reason: "no answer", underWay });
  const busy = (): Unknown => ({ kind: "unknown", reason: "busy", retryAfterMs: random.between(1, 120) * 1000 });

  /** Lets a call happen, or not, or later, or without an answer. */
  async function call<T>(
    effect: () => T,
  ): Promise<T | Unknown | { kind: "rejected"; reason: string; retry: "operator" }> {
    await travel();
    switch (fault()) {
      case "none": {
        const answer = effect();
        await travel();
        return answer;
      }
      case "lost_request":
        return lost(true);
      case "lost_answer":
        effect();
        return lost(true);
      case "late":
        later(() => void effect());
        return lost(true);
      case "busy":
        return busy();
      case "broken":
        if (random.chance(0.5)) effect();
        return { kind: "unknown", reason: "broken" };
      case "operator":
        return { kind: "rejected", reason: "Invalid key", retry: "operator" };
    }
  }

  function open(
    kind: ModelTransaction["kind"],
    reference: string,
    email: string,
    askedKobo: number,
  ): ModelTransaction | null {
    if (transactions.has(reference)) return null;
    const transaction: ModelTransaction = {
      reference,
      kind,
      email,
      askedKobo,
      at: now(),
      state: "waiting",
      paidKobo: 0,
      currency: "NGN",
      card: null,
    };
    transactions.set(reference, transaction);
    return transaction;
  }

  function pay(
    transaction: ModelTransaction,
    card: ChargeableCard | null,
    given: { kobo?: number; currency?: string } = {},
  ) {
    seen.charges += 1;
    transaction.state = "paid";
    transaction.card = card;
    transaction.paidKobo = given.kobo ?? transaction.askedKobo;
    transaction.currency = given.currency ?? "NGN";
  }

  function decline(transaction: ModelTransaction): void {
    seen.declines += 1;
    transaction.state = "failed";
  }

  function stateOf(transaction: ModelTransaction | undefined): ChargeState {
    if (!transaction) return { kind: "not_found" };
    const { reference, paidKobo, askedKobo, currency, card } = transaction;
    switch (transaction.state) {
      case "paid":
        return {
          kind: "succeeded",
          reference,
          amountKobo: paidKobo,
          requestedKobo: askedKobo,
          currency,
          mode: "test",
          transactionId: `id-${reference}`,
          card,
        };
      case "failed":
        return { kind: "failed", reason: "Declined", retry: "later" };
      case "reversed":
        return { kind: "reversed" };
      default:
        return { kind: "pending", word: transaction.state };
    }
  }

  function charge(reference: string, token: string, email: string, kobo: number): ChargeAnswer {
    const found = cards.get(token);
    if (transactions.has(reference)) return { kind: "duplicate" };
    if (!found || found.forgotten || found.card.email !== email) {
      return { kind: "rejected", reason: "Authorization code is invalid", retry: "new_card" };
    }
    const behaviour = found.behaviour === "pays" ? mood() : found.behaviour;
    if (behaviour === "refused") seen.declines += 1;
    if (behaviour === "refused") return { kind: "rejected", reason: "Expired card", retry: "new_card" };
    const transaction = open("card", reference, email, kobo);
    if (!transaction) return { kind: "duplicate" };
    if (behaviour === "pays") pay(transaction, found.card);
    if (behaviour === "declines") decline(transaction);
    if (behaviour === "waits") {
      transaction.state = "pending";
      later(() => {
        if (transaction.state !== "pending") return;
        if (random.chance(0.7)) pay(transaction, found.card);
        else decline(transaction);
      });
    }
    if (behaviour === "asks") {
      transaction.state = "confirming";
      return { kind: "state", state: { kind: "confirmation", url: `https://bank.example/${reference}` } };
    }
    return { kind: "state", state: stateOf(transaction) };
  }

  const processor: PaymentProcessor = {
    name: "sandbox",
    mode: "test",
    chargesPerSecond: Number.POSITIVE_INFINITY,
    startVerification: ({ reference, email, amountKobo }) =>
      call(() =>
        open("page", reference, email, amountKobo)
          ? ({ kind: "ready", url: `https://pay.example/${reference}` } as const)
          : ({ kind: "duplicate" } as const),
      ),
    async lookUp(reference) {
      const answer = await call(() => stateOf(transactions.get(reference)));
      return answer.kind === "rejected" ? lost(false) : answer;
    },
    chargeSavedCard: ({ reference, token, email, amountKobo }) =>
      call(() => charge(reference, token, email, amountKobo)),
    refund: ({ reference }) =>
      call(() => {
        const transaction = transactions.get(reference);
        if (transaction?.state === "reversed") return { kind: "already_refunded" } as const;
        if (transaction?.state !== "paid") return { kind: "rejected", reason: "Not paid", retry: "later" } as const;
        transaction.state = "reversed";
        seen.refunds += 1;
        return { kind: "accepted" } as const;
      }),
    readCallback: () => null,
    forgetCard: (token) =>
      call(() => {
        const found = cards.get(token);
        if (found) found.forgotten = true;
        return { kind: "forgotten" } as const;
      }),
  };

  return {
    processor,
    transactions,
    cards,
    seen,
    /** A card that its owner pays a page with: a token of its own each time, as the real one makes them. */
    newCard(email: string, signature: string, behaviour: Behaviour): ChargeableCard {
      tokens += 1;
      const card = {
        token: `token-${tokens}`,
        email,
        signature,
        brand: "visa",
        last4: "4081",
        expMonth: "12",
        expYear: "2040",
      };
      cards.set(card.token, { card, behaviour, forgotten: false });
      return card;
    },
    /** The customer pays a hosted page. False: it was paid before. */
    payPage(reference: string, card: ChargeableCard | null, given?: { kobo?: number; currency?: string }): boolean {
      const transaction = transactions.get(reference);
      if (transaction?.kind !== "page" || (transaction.state !== "waiting" && transaction.state !== "failed"))
        return false;
      if (now() > transaction.at + pageLifetimeMs) return false;
      pay(transaction, card, given);
      return true;
    },
    declinePage(reference: string): void {
      const transaction = transactions.get(reference);
      if (transaction?.state === "waiting") decline(transaction);
    },
    /** The customer answers the bank. */
    confirm(reference: string, yes: boolean): void {
      const transaction = transactions.get(reference);
      if (transaction?.state !== "confirming" || now() > transaction.at + pageLifetimeMs) return;
      const found = [...cards.values()].find(({ card }) => card.email === transaction.email);
      if (yes) pay(transaction, found?.card ?? null);
      else decline(transaction);
    },
  };
}

export type ModelProcessor = ReturnType<typeof createModelProcessor>;
