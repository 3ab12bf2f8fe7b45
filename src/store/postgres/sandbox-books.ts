import { and, eq, inArray } from "drizzle-orm";
import type { SandboxBooks, SandboxTransaction } from "../sandbox-books.ts";
import * as billing from "./billing-schema.ts";
import type { Connection } from "./connection.ts";
import * as t from "./sandbox-schema.ts";
import type { WriteTransaction } from "./writes.ts";

/** What the built-in payment processor remembers. Its rows belong to no tenant, as with a processor elsewhere. */
export function createSandboxBooks({ pool, writes }: Pick<Connection, "pool" | "writes">): SandboxBooks {
  async function find(where: ReturnType<typeof eq>): Promise<SandboxTransaction | null> {
    const [found] = await pool.db.select().from(t.sandboxTransaction).where(where);
    return found ?? null;
  }

  return {
    addTransaction: (transaction) =>
      writes.submit(async ({ db }) => {
        const { reference } = t.sandboxTransaction;
        const added = await db
          .insert(t.sandboxTransaction)
          .values(transaction)
          .onConflictDoNothing({ target: reference })
          .returning({ reference });
        return added.length > 0;
      }),

    findTransaction: (by) =>
      find(
        "reference" in by
          ? eq(t.sandboxTransaction.reference, by.reference)
          : eq(t.sandboxTransaction.accessCode, by.accessCode),
      ),

    moveTransaction: (reference, from, { state, cardToken, reason, paidAt }, card) =>
      writes.submit(async ({ db }) => {
        // Of two concurrent moves the second waits for the row, and compares with what the first one made of it.
        const moved = await db
          .update(t.sandboxTransaction)
          .set({ state, cardToken, reason, paidAt })
          .where(and(eq(t.sandboxTransaction.reference, reference), inArray(t.sandboxTransaction.state, [...from])))
          .returning({ reference: t.sandboxTransaction.reference });
        if (moved.length === 0) return false;
        if (card) await db.insert(t.sandboxCard).values(card);
        return true;
      }),

    async findCard(token) {
      const [card] = await pool.db.select().from(t.sandboxCard).where(eq(t.sandboxCard.token, token));
      return card ?? null;
    },

    async forgetCard(token) {
      await pool.write("update sandbox_card set forgotten = true where token = $1", [token]);
    },
  };
}

/** Makes the sandbox forget whom a closed billing account belonged to, in the transaction that closes it. */
export async function forgetSandboxCustomer({ db }: WriteTransaction, accountKey: number): Promise<void> {
  const { reference, cardToken } = t.sandboxTransaction;
  const references = db
    .select({ reference: billing.charge.reference })
    .from(billing.charge)
    .where(eq(billing.charge.accountKey, accountKey));
  const isTheirs = inArray(reference, references);
  const tokens = db.select({ token: cardToken }).from(t.sandboxTransaction).where(isTheirs);
  await db.update(t.sandboxCard).set({ email: "" }).where(inArray(t.sandboxCard.token, tokens));
  await db.update(t.sandboxTransaction).set({ email: "" }).where(isTheirs);
}
