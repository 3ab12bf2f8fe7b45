import type { OwnHeaders } from "../domain/webhook-headers.ts";
import type { Vault } from "../lib/vault.ts";

/** Seals the headers that tenants add to their deliveries, and opens them: they may hold receivers' secrets. */
export interface HeaderVault {
  /** Null if there are no headers: then there is nothing secret. */
  seal(tenantId: string, headers: OwnHeaders): Uint8Array | null;
  open(tenantId: string, sealed: Uint8Array | null): OwnHeaders;
}

/** What sealed headers are bound to, so that they open for no other account. */
export const headersContext = (tenantId: string) => `${tenantId}:webhook-headers`;

const none: OwnHeaders = [];

export const createHeaderVault = (vault: Vault): HeaderVault => ({
  seal: (tenantId, headers) =>
    headers.length === 0 ? null : vault.seal(JSON.stringify(headers), headersContext(tenantId)),
  open: (tenantId, sealed) =>
    sealed === null ? none : JSON.parse(Buffer.from(vault.open(sealed, headersContext(tenantId))).toString("utf8")),
});
