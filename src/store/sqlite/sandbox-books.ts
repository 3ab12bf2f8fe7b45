import type { Database } from "bun:sqlite";
import { eq, sql } from "drizzle-orm";
import type { SandboxBooks } from "../sandbox-books.ts";
import type { Connection } from "./connection.ts";
import { sandboxCard, sandboxTransaction } from "./sandbox-schema.ts";

const value = sql.placeholder;

/** What the built-in payment processor remembers. Its rows belong to no tenant, just as with an external processor. */
export function createSandboxBooks({ db, writer }: Pick<Connection, "db" | "writer">): SandboxBooks {
  const addTransaction = db
    .insert(sandboxTransaction)
    .values({
      reference: value("reference"),
      accessCode: value("accessCode"),
      state: value("state"),
      email: value("email"),
      amountKobo: value("amountKobo"),
      returnUrl: value("returnUrl"),
      cancelUrl: value("cancelUrl"),
      cardToken: value("cardToken"),
      reason: value("reason"),
      createdAt: value("createdAt"),
      paidAt: value("paidAt"),
    })
    .onConflictDoNothing({ target: sandboxTransaction.reference })
    .returning({ reference: sandboxTransaction.reference })
    .prepare();
  const byReference = db
    .select()
    .from(sandboxTransaction)
    .where(eq(sandboxTransaction.reference, value("reference")))
    .prepare();
  const byAccessCode = db
    .select()
    .from(sandboxTransaction)
    .where(eq(sandboxTransaction.accessCode, value("accessCode")))
    .prepare();
  const stateOf = db
    .select({ state: sandboxTransaction.state })
    .from(sandboxTransaction)
    .where(eq(sandboxTransaction.reference, value("reference")))
    .prepare();
  const moveTransaction = db
    .update(sandboxTransaction)
    .set({
      state: sql`${value("state")}`,
      cardToken: sql`${value("cardToken")}`,
      reason: sql`${value("reason")}`,
      paidAt: sql`${value("paidAt")}`,
    })
    .where(eq(sandboxTransaction.reference, value("reference")))
    .prepare();
  const addCard = db
    .insert(sandboxCard)
    .values({
      token: value("token"),
      email: value("email"),
      signature: value("signature"),
      brand: value("brand"),
      last4: value("last4"),
      expMonth: value("expMonth"),
      expYear: value("expYear"),
      reusable: value("reusable"),
      later: value("later"),
      forgotten: value("forgotten"),
    })
    .prepare();
  const cardByToken = db
    .select()
    .from(sandboxCard)
    .where(eq(sandboxCard.token, value("token")))
    .prepare();
  const forgetCard = db
    .update(sandboxCard)
    .set({ forgotten: true })
    .where(eq(sandboxCard.token, value("token")))
    .prepare();

  return {
    addTransaction: (transaction) => writer.submit<boolean>(() => addTransaction.get({ ...transaction }) !== undefined),

    findTransaction: async (by) => ("reference" in by ? byReference.get(by) : byAccessCode.get(by)) ?? null,

    moveTransaction: (reference, from, { state, cardToken, reason, paidAt }, card) =>
      writer.submit<boolean>(() => {
        const found = stateOf.get({ reference });
        if (!found || !from.includes(found.state)) return false;
        if (card) addCard.run({ ...card });
        moveTransaction.run({ reference, state, cardToken, reason, paidAt });
        return true;
      }),

    findCard: async (token) => cardByToken.get({ token }) ?? null,

    forgetCard: (token) => writer.submit<void>(() => void forgetCard.run({ token })),
  };
}

/** Statements that make the sandbox forget who a closed billing account belonged to; run in the transaction that closes it. */
export const forgetSandboxCustomer = (client: Database) =>
  [
    `update sandbox_card set email = '' where token in (select card_token from sandbox_transaction
       where reference in (select reference from charge where account_key = ?1))`,
    "update sandbox_transaction set email = '' where reference in (select reference from charge where account_key = ?1)",
  ].map((statement) => client.prepare<null, [number]>(statement));
