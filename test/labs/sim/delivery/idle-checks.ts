import type { Database } from "bun:sqlite";
import { webhookBurstMs } from "../../../../src/delivery/queue/webhook-pace.ts";
import type { FakeClock } from "../../../support/fake-clock.ts";
import type { Findings } from "./invariants.ts";
import type { Sent } from "./network.ts";
import type { PaceModel } from "./pace.ts";
import type { ThrottleModel } from "./throttle.ts";

export interface IdleCheckDeps {
  clock: FakeClock;
  client: Database;
  findings: Findings;
  underWay(): readonly Sent[];
  pace: PaceModel;
  throttle: Pick<ThrottleModel, "sinceAttemptMs">;
  /** By how much the wall clock was set ahead a moment ago: what has become due by that may be noticed a little later. */
  steppedAheadMs(): number;
}

interface Due {
  readonly webhookKey: number;
  readonly tenantKey: number;
  readonly rateLimit: number | null;
}

/** The end of a replay is told twice a second, and the account's next one begins with that. */
const announcedAfterMs = 500;

/**
 * Webhooks that have not answered are served a few in a millisecond, so that a crowd of them stalls nobody: one may have to
 * wait so long for its turn, as long as the clock is set for the next one.
 */
const servedAfterMs = 10;
const nextTurnMs = 1;

/**
 * What must hold whenever nothing is under way but what waits for the clock: then whatever could be done has been begun.
 * A wake-up that is lost shows at once here, not only at the end.
 */
export function createIdleChecks({ clock, client, findings, underWay, pace, throttle, steppedAheadMs }: IdleCheckDeps) {
  const selectDue = client.prepare<Due, [number]>(
    `select distinct delivery.webhook_key as webhookKey, delivery.tenant_key as tenantKey,
       webhook.rate_limit as rateLimit from delivery
     join webhook on webhook.key = delivery.webhook_key join tenant on tenant.key = delivery.tenant_key
     where state = 0 and next_attempt_at <= ?1 and removed_at is null and disabled_at is null and not paused
       and deleted_at is null and operator_suspended_at is null`,
  );
  const selectTurns = client.prepare<{ id: string }, []>(
    `select replay.id from replay where phase in ('waiting', 'queueing') and replay.key in (
       select min(replay.key) from replay join tenant on tenant.key = replay.tenant_key
       where phase in ('waiting', 'queueing', 'queued') and kind <> 'single' and operator_suspended_at is null
       group by tenant_key)`,
  );
  const selectUndrained = client.prepare<{ n: number }, []>(
    "select count(*) as n from webhook where (removed_at is not null or disabled_at is not null) and drained = 0",
  );
  const selectUnerased = client.prepare<{ n: number }, []>(
    "select count(*) as n from tenant where deleted_at is not null",
  );

  const selectForgotten = client.prepare<{ n: number }, []>(
    `select count(*) as n from delivery held join webhook on webhook.key = held.webhook_key
       join tenant on tenant.key = held.tenant_key
     where held.state = 0 and held.next_attempt_at is null and removed_at is null and deleted_at is null
       and (ordered = 0 or not exists (
         select 1 from delivery head where head.webhook_key = held.webhook_key and head.order_hash = held.order_hash
           and head.state = 0 and head.next_attempt_at is not null))`,
  );

  /** Since when each replay has been waiting for its turn to be noticed. */
  const turns = new Map<string, number>();
  /** Since when each webhook with something due has had nothing under way. */
  const waits = new Map<number, number>();

  /** Notes since when each of these has been seen, and forgets the others. @returns for how many ms, by key */
  function ages<K>(since: Map<K, number>, seen: ReadonlySet<K>): [K, number][] {
    for (const key of since.keys()) if (!seen.has(key)) since.delete(key);
    for (const key of seen) if (!since.has(key)) since.set(key, clock.monotonicMs());
    return [...since].map(([key, at]) => [key, clock.monotonicMs() - at]);
  }

  return {
    /** Nothing is to be expected now. A wait begins anew after that. */
    lookAway: () => waits.clear(),

    look(): void {
      const busy = new Set(underWay().map(({ delivery }) => delivery.webhookKey));
      const isTurnComing = (clock.nextTimerMs ?? Number.POSITIVE_INFINITY) <= nextTurnMs;
      const due = selectDue
        .all(clock.now() - steppedAheadMs())
        .filter(({ webhookKey, tenantKey }) => !pace.isSpent(tenantKey) && !busy.has(webhookKey));
      const rates = new Map(due.map(({ webhookKey, rateLimit }) => [webhookKey, rateLimit]));
      for (const [webhookKey, ms] of ages(waits, new Set(rates.keys()))) {
        const rate = rates.get(webhookKey) ?? null;
        findings.expect(
          rate === null
            ? ms <= servedAfterMs && isTurnComing
            : Math.min(ms, throttle.sinceAttemptMs(webhookKey)) <= servedAfterMs + webhookBurstMs + 1000 / rate,
          "awake",
          () => `deliveries to webhook ${webhookKey} have been due for ${ms} ms`,
        );
      }
      for (const [id, ms] of ages(turns, new Set(selectTurns.all().map((turn) => turn.id)))) {
        findings.expect(ms <= announcedAfterMs, "awake", () => `it is the turn of ${id}, which waits`);
      }
      const undrained = selectUndrained.get()?.n ?? 0;
      findings.expect(undrained === 0, "awake", () => `${undrained} removed webhooks have not been cleared up`);
      const forgotten = selectForgotten.get()?.n ?? 0;
      findings.expect(forgotten === 0, "awake", () => `${forgotten} deliveries are held back by nobody`);
      const unerased = selectUnerased.get()?.n ?? 0;
      findings.expect(unerased === 0, "awake", () => `${unerased} deleted accounts have not been erased`);
    },
  };
}

export type IdleChecks = ReturnType<typeof createIdleChecks>;
