export interface SandboxTransaction {
  readonly reference: string;
  readonly accessCode: string;
  readonly state: "waiting" | "confirming" | "paid" | "failed" | "reversed";
  readonly email: string;
  readonly amountKobo: number;
  readonly returnUrl: string;
  readonly cancelUrl: string;
  readonly cardToken: string | null;
  readonly reason: string | null;
  readonly createdAt: number;
  readonly paidAt: number | null;
}

export interface SandboxCard {
  readonly token: string;
  readonly email: string;
  readonly signature: string;
  readonly brand: string;
  readonly last4: string;
  readonly expMonth: string;
  readonly expYear: string;
  readonly reusable: boolean;
  /** How it behaves when it is charged again. */
  readonly later: "pays" | "declines" | "asks";
  readonly forgotten: boolean;
}

/**
 * What the built-in payment processor remembers, as any other processor would on its own side. A seam of its own, next to the
 * store's: only `billing/sandbox` uses it, and no verb of the store needs it. Error contract and durability are those of
 * `Store`, together with which it is opened and closed.
 */
export interface SandboxBooks {
  /** False when the reference was used before; then nothing is stored. */
  addTransaction(transaction: SandboxTransaction): Promise<boolean>;
  findTransaction(by: { reference: string } | { accessCode: string }): Promise<SandboxTransaction | null>;
  /** Moves a transaction on if it is still in one of the states `from`, and stores the card that paid. False if it is not. */
  moveTransaction(
    reference: string,
    from: readonly SandboxTransaction["state"][],
    to: Pick<SandboxTransaction, "state" | "cardToken" | "reason" | "paidAt">,
    card?: SandboxCard,
  ): Promise<boolean>;
  findCard(token: string): Promise<SandboxCard | null>;
  forgetCard(token: string): Promise<void>;
}
