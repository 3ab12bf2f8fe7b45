import { firstDelivery, type NewRecord, type UndeliverableRecord } from "../../domain/acceptance.ts";
import type { DueDelivery } from "../../domain/delivery.ts";
import type { Failure } from "../../domain/failure.ts";
import { kindWithoutAnswer, noWebhookKey, othersKey } from "../../domain/failure-groups.ts";
import type { Tenant } from "../../domain/tenant.ts";
import type { RegisteredWebhook } from "../../domain/tenant-state.ts";
import type { TraceContext } from "../../domain/trace-context.ts";
import type { WebhookRef } from "../../domain/webhook.ts";
import { encodeEventId, randomTail } from "../../lib/id.ts";
import { orderHashFor } from "../order-hash.ts";
import type { AcceptedEvents, AcceptRequest } from "../store.ts";
import { typeHashOf } from "../type-hash.ts";
import type { DescribedGroup, KnownGroups } from "./failure-counts.ts";
import type { LockedLines } from "./lines.ts";
import type { Numbers } from "./numbers.ts";

/** Number of random bytes in an event id. */
export const tailBytes = 8;

/** Events with their records, ready to be written, and the answer that follows. */
export interface PlannedEvents {
  readonly tenantKey: number;
  readonly events: readonly PlannedEvent[];
  readonly pending: readonly PlannedPending[];
  readonly ended: readonly PlannedEnded[];
  /** Failures of records that failed on creation, except for want of a webhook; each once. */
  readonly groups: readonly DescribedGroup[];
  readonly accepted: AcceptedEvents;
}

interface PlannedEvent {
  readonly seq: number;
  readonly tail: Uint8Array;
  readonly payload: Uint8Array;
  readonly type: string | null;
  readonly trace: TraceContext | null;
  readonly orderingKey: string | null;
}

interface PlannedPending {
  readonly eventSeq: number;
  readonly key: number;
  readonly webhookKey: number;
  readonly isOwned: boolean;
  /** The next attempt is then at 0. */
  readonly isHeldBack: boolean;
  readonly nextAttemptAt: number;
  readonly typeHash: number | null;
  readonly orderHash: number | null;
}

/** A record that ends as soon as it is created. */
interface PlannedEnded {
  readonly eventSeq: number;
  readonly key: number;
  readonly state: "FAILED" | "SKIPPED";
  readonly finishedAt: number;
  /** Set for one that is FAILED because its webhook is disabled. */
  readonly webhookKey: number | null;
  /** Set for one that is FAILED. */
  readonly failure: Failure | null;
  readonly failureKey: number | null;
  readonly typeHash: number | null;
}

export interface PlanDeps {
  readonly numbers: Numbers;
  readonly groups: KnownGroups;
  /** Of the node that becomes the owner of deliveries. */
  readonly incarnation: number;
}

const noRoomAtAll = () => 0;

const noFailure = { webhookKey: null, failure: null, failureKey: null };

/** Numbers the events of one tenant and their records, and asks which webhooks have room. */
export function planEvents(
  { numbers, groups, incarnation }: PlanDeps,
  tenant: Tenant,
  { events: given, trace = null, roomFor = noRoomAtAll }: Pick<AcceptRequest, "events" | "trace" | "roomFor">,
  recordsOfEach: readonly (readonly NewRecord[])[],
  lines: LockedLines,
): PlannedEvents {
  const refOf = (webhookKey: number): WebhookRef => ({ tenantKey: tenant.key, webhookKey });
  const takers = new Map<number, { readonly paused: boolean; readonly room: number; records: number }>();
  const takerOf = ({ key, paused }: RegisteredWebhook) => {
    const known = takers.get(key);
    if (known) return known;
    const taker = { paused, room: paused ? 0 : roomFor(refOf(key)), records: 0 };
    takers.set(key, taker);
    return taker;
  };
  const events: PlannedEvent[] = [];
  const pending: PlannedPending[] = [];
  const ended: PlannedEnded[] = [];
  const described = new Map<number, DescribedGroup>();
  const failureOf = ({ webhook, failure }: UndeliverableRecord) => {
    if (!webhook) return { webhookKey: null, failure, failureKey: noWebhookKey };
    const kind = kindWithoutAnswer(failure, webhook.key);
    const key = groups.keyOf(tenant.key, kind);
    if (key !== othersKey) described.set(key, { tenantKey: tenant.key, key, kind });
    return { webhookKey: webhook.key, failure, failureKey: key };
  };
  const eventIds: string[] = [];
  const deliveries: DueDelivery[] = [];
  for (const [i, { payload, type, orderingKey = null }] of given.entries()) {
    const seq = numbers.nextEventSeq();
    const tail = randomTail();
    const eventId = encodeEventId(seq, tail);
    eventIds.push(eventId);
    events.push({ seq, tail, payload, type, trace, orderingKey });
    const typeHash = type === null ? null : typeHashOf(type);
    for (const record of recordsOfEach[i] ?? []) {
      const key = numbers.nextKey();
      if (record.state !== "PENDING") {
        const { state, finishedAt } = record;
        const failed = state === "FAILED" ? failureOf(record) : null;
        ended.push({ ...(failed ?? noFailure), eventSeq: seq, key, state, finishedAt, typeHash });
        continue;
      }
      const { webhook, nextAttemptAt } = record;
      const place = lines.join(webhook.key, orderHashFor(webhook, orderingKey));
      const { orderHash, isHeldBack } = place;
      const waiting = { eventSeq: seq, key, webhookKey: webhook.key, typeHash, ...place };
      if (isHeldBack) {
        pending.push({ ...waiting, isOwned: false, nextAttemptAt: 0 });
        continue;
      }
      const taker = takerOf(webhook);
      taker.records += 1;
      const isOwned = taker.records <= taker.room;
      pending.push({ ...waiting, isOwned, nextAttemptAt });
      if (!isOwned) continue;
      const event = { deliveryKey: key, eventSeq: seq, eventId, payload, trace, orderHash };
      deliveries.push({ ...firstDelivery(tenant, webhook, event), owner: incarnation });
    }
  }
  const unowned = [...takers].flatMap(([key, { paused, room, records }]) =>
    records > room && !paused ? [refOf(key)] : [],
  );
  const failed = ended.filter(({ state }) => state === "FAILED").map(({ webhookKey }) => webhookKey);
  const accepted = { eventIds, repeated: false, deliveries, unowned, failed };
  return { tenantKey: tenant.key, events, pending, ended, groups: [...described.values()], accepted };
}

/**
 * For events accepted by a node that was declared dead before the answer came: they are stored, but their deliveries are up
 * for grabs; another node may already be attempting them.
 */
export function disowned(accepted: AcceptedEvents): AcceptedEvents {
  const refs = [...accepted.unowned, ...accepted.deliveries];
  const unowned = [
    ...new Map(refs.map(({ tenantKey, webhookKey }) => [webhookKey, { tenantKey, webhookKey }])).values(),
  ];
  return { ...accepted, deliveries: [], unowned };
}

/** The answer to a request that was accepted before. */
export function repeatedAnswer(eventIds: readonly string[]): AcceptedEvents {
  return {
    eventIds,
    repeated: true,
    deliveries: [],
    unowned: [],
    failed: [],
  };
}
