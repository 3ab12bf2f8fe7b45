import {
  type Answer,
  accessCodeOf,
  challenged,
  chargeAttempted,
  done,
  pageReady,
  paystackCards,
  refundQueued,
  refused,
  type StandInAuthorization,
  type StandInCard,
  type StandInTransaction,
  verified,
} from "./paystack-answers.ts";
import type { StandInEvent } from "./paystack-callbacks.ts";
import type { MoneyFaults } from "./paystack-faults.ts";
import type { CheckedRequest, Fields } from "./paystack-requests.ts";

/** Well-formed, but rejected by Paystack. */
export const refusedEmail = "ada@refused-by-paystack.example";

/** What the customer did, and where the browser goes next. */
export interface CustomerReturn {
  /** Includes the query that Paystack appends; null when there is nowhere to go. */
  readonly returnUrl: string | null;
}

/**
 * The state behind the stand-in: transactions by reference, cards, refunds. It has no HTTP in it; a request comes checked,
 * and an answer goes out as a value.
 *
 *   abandoned ──pay──▶ success ──refund──▶ reversed ──refund fails──▶ success
 *     │  ▲                ▲
 *   decline └─ failed ──pay─┘          (a hosted page takes another card)
 *
 *   charge ─▶ success | failed | ongoing ──confirm, decline──▶ success | failed
 */
export function createPaystackBooks({
  domain,
  faults,
  announce,
}: {
  domain: "test" | "live";
  faults: MoneyFaults;
  announce: (event: StandInEvent) => void;
}) {
  const transactions = new Map<string, StandInTransaction>();
  const authorizations = new Map<string, StandInAuthorization>();
  let pagesUrl = "";

  /** By its reference, or by the address of its page. */
  function find(page: string): StandInTransaction {
    const found = [...transactions.values()].find(
      (transaction) => transaction.reference === page || transaction.page === page,
    );
    if (!found) throw new Error(`There is no page or reference ${page}`);
    return found;
  }

  function open(fields: Fields): StandInTransaction {
    const { reference, email, amount, callback_url, metadata } = fields;
    const { cancel_action } = (typeof metadata === "string" ? JSON.parse(metadata) : (metadata ?? {})) as Fields;
    const transaction: StandInTransaction = {
      reference: String(reference),
      id: 4_099_490_251 + transactions.size,
      email: String(email),
      requestedKobo: Number(amount),
      callbackUrl: String(callback_url),
      cancelUrl: typeof cancel_action === "string" ? cancel_action : null,
      page: null,
      timesCharged: 0,
      status: "abandoned",
      amountKobo: Number(amount),
      currency: "NGN",
      gatewayResponse: "The transaction was not completed",
      authorization: null,
      refundedKobo: 0,
    };
    transactions.set(transaction.reference, transaction);
    return transaction;
  }

  function openPage(transaction: StandInTransaction): void {
    transaction.page = `${pagesUrl}/page/${accessCodeOf(transaction.reference)}`;
  }

  function authorize(email: string, card: StandInCard): StandInAuthorization {
    const authorization: StandInAuthorization = {
      // A different one each time, even for the same card.
      code: `AUTH_${accessCodeOf(`authorization ${authorizations.size}`).slice(0, 10)}`,
      email,
      card,
      reusable: card.reusable && !faults.notReusable,
      active: true,
    };
    authorizations.set(authorization.code, authorization);
    return authorization;
  }

  function take(transaction: StandInTransaction, authorization: StandInAuthorization): void {
    transaction.timesCharged++;
    transaction.status = "success";
    transaction.gatewayResponse = "Approved";
    transaction.amountKobo = faults.amountKobo ?? transaction.requestedKobo;
    transaction.currency = faults.currency ?? "NGN";
    transaction.authorization = authorization;
    announce({ name: "charge.success", transaction });
  }

  function fail(transaction: StandInTransaction, text: string): void {
    transaction.status = "failed";
    transaction.gatewayResponse = text;
  }

  const duplicate = refused(400, "Duplicate Transaction Reference", "duplicate_reference");

  function initialize(fields: Fields): Answer {
    if (fields.email === refusedEmail) return refused(400, "Invalid Email Address Passed", "invalid_params");
    if (transactions.has(String(fields.reference))) return duplicate;
    const transaction = open(fields);
    openPage(transaction);
    return pageReady(transaction);
  }

  /** The documentation says 404 here; the API answers 400. */
  function verify(reference: string): Answer {
    const transaction = transactions.get(reference);
    if (!transaction) return refused(400, "Transaction reference not found.", "transaction_not_found");
    return verified(transaction, domain);
  }

  /** A refusal creates no transaction, and leaves the reference free. */
  function charge(fields: Fields): Answer {
    if (transactions.has(String(fields.reference))) return duplicate;
    const authorization = authorizations.get(String(fields.authorization_code));
    if (!authorization) return refused(400, "Invalid Authorization Code", "invalid_params");
    if (authorization.email !== fields.email || !authorization.active || !authorization.reusable) {
      return refused(
        400,
        "Email does not match Authorization code. Authorization may be inactive or belong to a different email. Please confirm.",
      );
    }
    const transaction = open(fields);
    const later = faults.savedCard ?? authorization.card.later;
    if (later.kind === "asks") {
      transaction.status = "ongoing";
      transaction.authorization = authorization;
      openPage(transaction);
      return challenged(transaction);
    }
    if (later.kind === "declines") fail(transaction, later.text);
    else take(transaction, authorization);
    return chargeAttempted(transaction, authorization, domain);
  }

  function refund(fields: Fields): Answer {
    const transaction = transactions.get(String(fields.transaction));
    const amountKobo = Number(fields.amount);
    if (!transaction) return refused(404, "Transaction not found", "transaction_not_found");
    if (transaction.status === "reversed") return refused(400, "Transaction has been fully reversed");
    if (transaction.status !== "success") return refused(400, "Transaction has not been paid", "invalid_params");
    if (transaction.refundedKobo + amountKobo > transaction.amountKobo) {
      return refused(400, "Refund amount cannot be more than transaction amount", "invalid_params");
    }
    transaction.refundedKobo += amountKobo;
    if (transaction.refundedKobo === transaction.amountKobo) transaction.status = "reversed";
    announce({ name: "refund.pending", transaction });
    announce({ name: "refund.processed", transaction });
    return refundQueued(transaction, amountKobo, domain);
  }

  function deactivate(fields: Fields): Answer {
    const authorization = authorizations.get(String(fields.authorization_code));
    if (!authorization?.active) return refused(404, "Authorization code not found.");
    authorization.active = false;
    return done("Authorization has been deactivated");
  }

  /** Where the browser goes after a payment. `trxref` is the older name of the same thing. */
  const returning = ({ callbackUrl, reference }: StandInTransaction): CustomerReturn => ({
    returnUrl: `${callbackUrl}?trxref=${encodeURIComponent(reference)}&reference=${encodeURIComponent(reference)}`,
  });

  return {
    transactions,
    find,
    /** The pages are under this address. */
    openPagesAt(url: string) {
      pagesUrl = url;
    },

    answer({ operation, reference, fields }: CheckedRequest): Answer {
      switch (operation) {
        case "initialize":
          return initialize(fields);
        case "verify":
          return verify(reference);
        case "charge":
          return charge(fields);
        case "refund":
          return refund(fields);
        case "deactivate":
          return deactivate(fields);
        case null:
          return refused(404, "Not found");
      }
    },

    pay(page: string, card: StandInCard = paystackCards.visa): CustomerReturn {
      const transaction = find(page);
      if (transaction.status !== "abandoned" && transaction.status !== "failed") {
        throw new Error(`${transaction.reference} is ${transaction.status}: nothing can be paid on its page`);
      }
      take(transaction, authorize(transaction.email, card));
      return returning(transaction);
    },

    confirm(page: string): CustomerReturn {
      const transaction = find(page);
      if (transaction.status !== "ongoing" || transaction.authorization === null) {
        throw new Error(`${transaction.reference} is ${transaction.status}: there is nothing to confirm`);
      }
      take(transaction, transaction.authorization);
      return returning(transaction);
    },

    /** The browser stays on the page: another card may work. */
    decline(page: string, text: string): void {
      const transaction = find(page);
      if (transaction.status === "success" || transaction.status === "reversed") {
        throw new Error(`${transaction.reference} is ${transaction.status}: nothing can be declined any more`);
      }
      fail(transaction, text);
    },

    failRefund(reference: string): StandInTransaction {
      const transaction = find(reference);
      if (transaction.status !== "reversed") {
        throw new Error(`${transaction.reference} is ${transaction.status}: no refund of it can fail`);
      }
      transaction.status = "success";
      transaction.refundedKobo = 0;
      return transaction;
    },

    abandon(page: string): CustomerReturn {
      return { returnUrl: find(page).cancelUrl };
    },
  };
}
