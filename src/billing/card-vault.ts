import type { NewCard, SavedCard } from "../domain/books.ts";
import type { Vault } from "../lib/vault.ts";
import type { ChargeableCard } from "./processor.ts";

/** What a card is charged with: a secret, so it is encrypted at rest. */
export interface CardSecrets {
  readonly token: string;
  readonly email: string;
}

/** What a sealed card is bound to, so that it opens for no other account. */
export const cardContext = (accountId: string) => `${accountId}:card`;

/** Seals the secrets by which the processor knows a card. They open only for the account they were sealed for. */
export interface CardVault {
  seal(card: ChargeableCard, processor: string, accountId: string): NewCard;
  open(card: SavedCard, accountId: string): CardSecrets;
}

export function createCardVault(vault: Vault): CardVault {
  return {
    seal({ token, email, ...shown }, processor, accountId) {
      return { ...shown, processor, sealed: vault.seal(JSON.stringify({ token, email }), cardContext(accountId)) };
    },
    open({ sealed }, accountId) {
      const text = new TextDecoder().decode(vault.open(sealed, cardContext(accountId)));
      const { token, email } = JSON.parse(text) as CardSecrets;
      return { token, email };
    },
  };
}
