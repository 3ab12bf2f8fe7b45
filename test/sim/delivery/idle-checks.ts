import type { Database } from "bun:sqlite";
import type { FakeClock } from "../../support/fake-clock.ts";
import type { Findings } from "./invariants.ts";
import type { Sent } from "./network.ts";

export interface IdleCheckDeps {
  clock: FakeClock;
  client: Database;
  findings: Findings;
  underWay(): readonly Sent[];
  /** By how much the wall clock was set ahead a moment ago: what has become due by that may be noticed a little later. */
  steppedAheadMs(): number;
}

/** The end of a replay is told twice a second, and the account's next one begins with that. */
const announcedAfterMs = 500;

/**
 * What must hold whenever nothing is under way but what waits for the clock: then whatever could be done has been begun.
 * A wake-up that is lost shows at once here, not only at the end.
 */
export function createIdleChecks({ clock, client, findings, underWay, steppedAheadMs }: IdleCheckDeps) {
  const selectDue = client.prepare<{ webhookKey: number; n: number }, [number]>(
    `select delivery.webhook_key as webhookKey, count(*) as n from delivery
     join webhook on webhook.key = delivery.webhook_key join tenant on tenant.key = delivery.tenant_key
     where state = 0 and next_attempt_at <= ?1 and removed_at is null and deleted_at is null
       and operator_suspended_at is null
     group by delivery.webhook_key`,
  );
  const selectTurns = client.prepare<{ id: string }, []>(
    `select replay.id from replay where phase in ('waiting', 'queueing') and replay.key in (
       select min(replay.key) from replay join tenant on tenant.key = replay.tenant_key
       where phase in ('waiting', 'queueing', 'queued') and kind <> 'single' and operator_suspended_at is null
       group by tenant_key)`,
  );
  const selectUndrained = client.prepare<{ n: number }, []>(
    "select count(*) as n from webhook where removed_at is not null and drained = 0",
  );
  const selectUnerased = client.prepare<{ n: number }, []>(
    "select count(*) as n from tenant where deleted_at is not null",
  );

  /** Since when each replay has been waiting for its turn to be noticed. */
  const turns = new Map<string, number>();

  return {
    look(): void {
      const busy = new Set(underWay().map(({ delivery }) => delivery.webhookKey));
      for (const { webhookKey, n } of selectDue.all(clock.now() - steppedAheadMs())) {
        findings.expect(busy.has(webhookKey), "awake", () => `${n} deliveries to webhook ${webhookKey} are due`);
      }
      const inTurn = new Set(selectTurns.all().map(({ id }) => id));
      for (const id of turns.keys()) if (!inTurn.has(id)) turns.delete(id);
      for (const id of inTurn) {
        const since = turns.get(id) ?? clock.monotonicMs();
        turns.set(id, since);
        const isNoticed = clock.monotonicMs() - since <= announcedAfterMs;
        findings.expect(isNoticed, "awake", () => `it is the turn of ${id}, which waits`);
      }
      const undrained = selectUndrained.get()?.n ?? 0;
      findings.expect(undrained === 0, "awake", () => `${undrained} removed webhooks have not been cleared up`);
      const unerased = selectUnerased.get()?.n ?? 0;
      findings.expect(unerased === 0, "awake", () => `${unerased} deleted accounts have not been erased`);
    },
  };
}

export type IdleChecks = ReturnType<typeof createIdleChecks>;
