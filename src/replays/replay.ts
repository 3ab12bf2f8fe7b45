import type { DeliveryControl } from "../delivery/queue/control.ts";
import { type Origin, replayCancelled } from "../domain/audit.ts";
import type { Replay, ReplayFilter, ReplayKind, ReplayPreview } from "../domain/replay.ts";
import { refusalOfWork } from "../domain/standing.ts";
import type { Tenant } from "../domain/tenant.ts";
import type { Clock } from "../lib/clock.ts";
import { newId } from "../lib/id.ts";
import type { Store } from "../store/store.ts";
import type { Hub } from "../stream/hub.ts";
import { eventOfAnotherAccount, noSuchEvent, noSuchReplay, noSuchWebhook, toProgressMessage } from "./model.ts";

export interface ReplayDeps {
  store: Pick<Store, "eventOwner" | "webhooks" | "replayEvent" | "startReplay" | "previewReplay" | "cancelReplay">;
  deliveries: Pick<DeliveryControl, "wake" | "overtake">;
  hub: Pick<Hub, "publish">;
  replayer: { wake(): void };
  clock: Pick<Clock, "now">;
  /** How many bulk replays an account may start in 24 hours; null: any number. */
  bulkReplaysPerDay: number | null;
}

/** What a bulk replay selects; `from` and `to` are ingestion times, both inclusive. */
export interface BulkSelection {
  kind: Exclude<ReplayKind, "single">;
  from?: number;
  to?: number;
  filter?: ReplayFilter;
}

/** What any replay selects. */
export type Selection = BulkSelection | { kind: "single"; eventId: string; filter?: ReplayFilter };

/** Rules, section 3: one bulk replay per account runs and ten wait. */
const maxUnfinished = 11;

/** Delivers stored events again. */
export function createReplays({ store, deliveries, hub, replayer, clock, bulkReplaysPerDay }: ReplayDeps) {
  const limits = { unfinished: maxUnfinished, perDay: bulkReplaysPerDay };
  const announce = (tenant: Tenant, replay: Replay, eventIds: readonly string[] = []) =>
    hub.publish(tenant.id, "replay.progressed", () => toProgressMessage(replay, eventIds, clock.now()));

  /** A webhook that is not registered gets nothing, so naming one is a mistake. */
  async function refuseUnknownWebhook({ key }: Tenant, { webhook }: ReplayFilter = {}): Promise<void> {
    if (webhook === undefined) return;
    const registered = await store.webhooks(key);
    if (!registered.some(({ id, url }) => id === webhook || url === webhook)) throw noSuchWebhook();
  }

  return {
    /** What a replay would select. @throws not_found `webhook_not_found` */
    async preview(tenant: Tenant, selection: Selection): Promise<ReplayPreview> {
      await refuseUnknownWebhook(tenant, selection.filter);
      return store.previewReplay(tenant.key, selection);
    },

    /**
     * @throws payment_required, forbidden (the account, or `event_of_another_account`), not_found `event_not_found`,
     * `event_not_selected` or `webhook_not_found`, unavailable `storage_full`
     */
    async replayEvent(
      tenant: Tenant,
      { eventId, label, filter = {} }: { eventId: string; label: string; filter?: ReplayFilter },
      origin: Origin,
    ): Promise<Replay> {
      refuseWithoutStanding(tenant);
      const owner = await store.eventOwner(eventId);
      if (owner === null) throw noSuchEvent();
      if (owner !== tenant.key) throw eventOfAnotherAccount();
      await refuseUnknownWebhook(tenant, filter);
      const order = { id: newId("rpl"), kind: "single", label, eventId, filter } as const;
      const act = { ...origin, action: "event.replayed" } as const;
      const { replay, webhooks, overtaken, eventIds } = await store.replayEvent(tenant.key, order, clock.now(), act);
      if (overtaken.length > 0) deliveries.overtake(overtaken);
      if (webhooks.length > 0) deliveries.wake(webhooks);
      announce(tenant, replay, eventIds);
      // Overtaking the last run of a bulk replay completes that replay, so the account's next one may begin.
      replayer.wake();
      return replay;
    },

    /**
     * @throws payment_required, forbidden (the account), not_found `webhook_not_found`, rate_limited `too_many_replays` or
     * `too_many_replays_today`, unavailable `storage_full`
     */
    async startBulk(tenant: Tenant, selection: BulkSelection, label: string, origin: Origin): Promise<Replay> {
      refuseWithoutStanding(tenant);
      await refuseUnknownWebhook(tenant, selection.filter);
      const order = { id: newId("rpl"), label, ...selection };
      const detail = { replay: order.id, kind: order.kind };
      const act = { ...origin, action: "replay.started", detail } as const;
      const replay = await store.startReplay(tenant.key, order, clock.now(), limits, act);
      announce(tenant, replay);
      replayer.wake();
      return replay;
    },

    /** Nothing more of it is sent; waiting records return to their earlier state. @throws not_found `replay_not_found` */
    async cancel(tenant: Tenant, replayId: string, origin: Origin): Promise<Replay> {
      const replay = await store.cancelReplay(tenant.key, replayId, clock.now(), replayCancelled(origin, replayId));
      if (!replay) throw noSuchReplay();
      announce(tenant, replay);
      // The account's next one may begin.
      replayer.wake();
      return replay;
    },
  };
}

export type Replays = ReturnType<typeof createReplays>;

function refuseWithoutStanding(tenant: Tenant): void {
  const refusal = refusalOfWork(tenant);
  if (refusal) throw refusal;
}
