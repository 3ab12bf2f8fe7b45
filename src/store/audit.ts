import type { Act, AuditAction, AuditDetail, AuditEntry } from "../domain/audit.ts";

export interface AuditQuery {
  /** Of this account, which need not exist any more; empty: of the server itself. @default of all, and of the server */
  readonly tenantId?: string;
  readonly action?: AuditAction;
  /** Of the first time, both inclusive. */
  readonly from?: number;
  readonly to?: number;
  readonly offset: number;
  readonly limit: number;
}

/**
 * The verbs that write something take an act with them, which is noted in their transaction: once they have written, and not
 * if they are refused or found nothing to do.
 */
export interface AuditVerbs {
  /**
   * Notes an act that writes nothing else, or of a stranger, who did it so many times. Of an account (null: of the server)
   * that is gone nothing is noted.
   */
  noteAct(tenantId: string | null, act: Act, times?: number): Promise<void>;
  /** The newest first. `total` is counted up to 10,000. */
  audit(query: AuditQuery): Promise<{ entries: AuditEntry[]; total: number; totalIsExact: boolean }>;
}

/** A list of all accounts' entries may be long, and nobody pages so far. */
export const countedAudit = 10_000;

/** @param found up to one more than is counted */
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

/** What was written by a later release may have an action that this one does not know; it is shown all the same. */
export const toAuditEntry = ({ detail, ...row }: AuditRow): AuditEntry => ({
  ...(row as Omit<AuditEntry, "detail">),
  ...(detail !== null && { detail: JSON.parse(detail) as AuditDetail }),
});

/** Those of an account that was erased keep what the operator did, and when it was deleted, without anything about it. */
export const keptAfterErasure = "(actor = 'operator' or action = 'account.deleted')";
