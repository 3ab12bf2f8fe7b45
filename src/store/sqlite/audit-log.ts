import type { Database } from "bun:sqlite";
import { type Act, type AuditActor, auditLimits, isCounted, mostOfOperator } from "../../domain/audit.ts";
import type { WriteTransaction } from "./transaction.ts";

/** Records acts in the transaction that performs them. */
export interface AuditLog {
  /** @param tenantId empty: the act is about the server */
  note(tx: WriteTransaction, tenantId: string, act: Act, times?: number): void;
}

export function createAuditLog(client: Database): AuditLog {
  const countAgain = client.prepare(
    `update audit set times = times + ?7, last_at = ?5 where key = (
       select key from audit where tenant_id = ?1 and at > ?6 and action = ?2 and actor = ?3 and address is ?4
       order by at desc limit 1)`,
  );
  const strangersOfLate = client.prepare<{ n: number }, [string, number]>(
    "select count(*) as n from audit where actor = 'stranger' and tenant_id = ?1 and at > ?2",
  );
  const insert = client.prepare(
    `insert into audit (tenant_id, action, actor, via, address, times, at, last_at, detail)
     values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8)`,
  );
  const trimOf = (actor: AuditActor) =>
    client.prepare(
      `delete from audit where key in (
         select key from audit where actor = '${actor}' and tenant_id = ?1 order by at desc, key desc limit -1 offset ?2)`,
    );
  const trimStrangers = trimOf("stranger");
  const trimOperator = trimOf("operator");
  /** Counts in the index, and starts with the oldest: to tell whose each entry is takes a look at its row. */
  const trim = client.prepare(
    `delete from audit where key in (
       select key from audit where tenant_id = ?1 and actor <> 'operator' order by at, key
       limit max(0, (select count(*) from audit where tenant_id = ?1) - ?2))`,
  );

  return {
    note(tx, tenantId, act, times = 1) {
      const { action, actor, via, detail } = act;
      const since = tx.now - auditLimits.windowMs;
      const isAgain = (address: string | null) =>
        countAgain.run(tenantId, action, actor, address, tx.now, since, times).changes > 0;
      let { address } = act;
      if (isCounted(act) && isAgain(address)) return;
      if (actor === "stranger" && (strangersOfLate.get(tenantId, since)?.n ?? 0) >= auditLimits.strangersAtOnce) {
        address = null;
        if (isAgain(address)) return;
      }
      insert.run(tenantId, action, actor, via, address, times, tx.now, detail ? JSON.stringify(detail) : null);
      if (actor === "stranger") trimStrangers.run(tenantId, auditLimits.ofStrangers);
      if (actor === "operator") trimOperator.run(tenantId, mostOfOperator(tenantId));
      trim.run(tenantId, auditLimits.entries);
    },
  };
}
