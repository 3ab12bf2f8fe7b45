import { createHmac } from "node:crypto";
import type { NewInvoice } from "../domain/books.ts";
import { encodeBase32 } from "../lib/id.ts";

/**
 * The references by which a processor knows our charges: derived with a secret from the account, the month, the purpose
 * and a number, never random. So a reference reveals nothing, and a server restored from a backup derives the same one
 * again, finds at the processor what has been charged since, and does not charge it twice.
 */
export interface References {
  /** The billing account of a tenant, even one that was opened after the backup. */
  accountId(tenantId: string): string;
  /** The nth hosted page of an account. */
  page(accountId: string, nth: number): string;
  /**
   * The nth invoice of one kind in a billing month (`2026-11`). A closing has no month, because an account closes only
   * once.
   */
  invoiceId(accountId: string, kind: NewInvoice["kind"], month: string, nth: number): string;
}

const prefixes = { upgrade: "upg", subscription: "sub", closing: "end" } as const;

/** 26 characters: with prefix and number, well within what processors accept (64). */
const tokenBytes = 16;

/** @param secret 32 bytes, the same for the life of the database */
export function createReferences(secret: Uint8Array): References {
  const derive = (...parts: (string | number)[]) =>
    encodeBase32(createHmac("sha256", secret).update(JSON.stringify(parts)).digest().subarray(0, tokenBytes));
  return {
    accountId: (tenantId) => `bill_${derive("account", tenantId)}`,
    page: (accountId, nth) => `ver-${derive("verification", accountId, nth)}`,
    invoiceId: (accountId, kind, month, nth) => derive(kind, accountId, month, nth),
  };
}

/** A reference for the nth charge of an invoice; it names nobody. */
export const chargeReference = (kind: NewInvoice["kind"], invoiceId: string, nth: number): string =>
  `${prefixes[kind]}-${invoiceId}-a${nth}`;

/** A reference for a charge without a card: it fails here, and uses up none of the numbers that the processor sees. */
export const cardlessReference = (kind: NewInvoice["kind"], invoiceId: string, nth: number): string =>
  `${prefixes[kind]}-${invoiceId}-n${nth}`;
