import type { Act, AuditAction, AuditDetail, AuditEntry } from "../domain/audit.ts";

export interface AuditQuery {
  /** Only entries of this account, which may be gone; empty: of the server itself. @default of all accounts and the server */
  readonly tenantId?: string;
  readonly action?: AuditAction;
  /** When an entry's act first happened, both inclusive. */
  readonly from?: number;
  readonly to?: number;
  readonly offset: number;
  readonly limit: number;
}

/**
 * Verbs that write take an act along, which is recorded in their own transaction: after they have written, and not at all if
 * they are refused or found nothing to do.
 */
export interface AuditVerbs {
  /**
   * Records an act that writes nothing else, or one of a stranger, who did it `times` times. The account is `tenantId` (null:
   * the server itself); nothing is recorded for one that is gone.
   */
  noteAct(tenantId: string | null, act: Act, times?: number): Promise<void>;
  /** Newest first. `total` is counted up to 10,000. */
  audit(query: AuditQuery): Promise<{ entries: AuditEntry[]; total: number; totalIsExact: boolean }>;
}

/** The list of all accounts' entries may be long, and nobody pages that far. */
export const countedAudit = 10_000;

/** @param found at most one more than is counted */
export const countedUpTo = (found: number) => ({
  total: Math.min(found, countedAudit),
  totalIsExact: found <= countedAudit,
});

export interface AuditRow {
  tenantId: string;
  action: string;
  actor: string;
  via: string | null;
  address: string | null;
  times: number;
  at: number;
  lastAt: number;
  /** JSON. */
  detail: string | null;
}

/** A later release may have written an action that this one does not know; it is shown all the same. */
export const toAuditEntry = ({ detail, ...row }: AuditRow): AuditEntry => ({
  ...(row as Omit<AuditEntry, "detail">),
  ...(detail !== null && { detail: JSON.parse(detail) as AuditDetail }),
});

/** Of an erased account's entries, what the operator did and when it was deleted stay, without any details about the account. */
export const keptAfterErasure = "(actor = 'operator' or action = 'account.deleted')";
