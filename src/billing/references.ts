import { createHmac } from "node:crypto";
import type { NewInvoice } from "../domain/books.ts";
import { encodeBase32 } from "../lib/id.ts";

/**
 * What a processor knows a charge by: worked out with a secret from the account, the month, the purpose and a number, and
 * never by chance. So it tells nobody anything, and a server that goes on from a backup comes to the same one again, finds
 * at the processor what was charged since, and does not charge it twice.
 */
export interface References {
  /** The billing account of a tenant, also one that was opened after the backup. */
  accountId(tenantId: string): string;
  /** The nth hosted page of an account. */
  page(accountId: string, nth: number): string;
  /** The nth invoice of one kind in a billing month (`2026-11`); an account has one end, and no month of it. */
  invoiceId(accountId: string, kind: NewInvoice["kind"], month: string, nth: number): string;
}

const prefixes = { upgrade: "upg", subscription: "sub", closing: "end" } as const;

/** 26 characters: with prefix and number well within what processors take (64). */
const tokenBytes = 16;

/** @param secret 32 bytes, the same for as long as the database is */
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

/** Of a charge for which there is no card: it fails here, and takes no number of those that the processor hears of. */
export const cardlessReference = (kind: NewInvoice["kind"], invoiceId: string, nth: number): string =>
  `${prefixes[kind]}-${invoiceId}-n${nth}`;
