import type { DeliveryState } from "../domain/delivery.ts";
import { type FailureCode, serverRestored } from "../domain/failure.ts";
import type { DeliveredTypes } from "../domain/failure-groups.ts";
import type { WebhookHealth } from "./store.ts";

/**
 * A webhook's health is judged by its latest `records` records. An event makes one record per registered webhook, three on
 * the largest plan, so a webhook's latest 100 are among the account's latest 300. The only ones further back were made by
 * replays of events from before the webhook was registered, and they count as far as `walked` reaches.
 */
export const healthLimits = { records: 100, walked: 5000 };

export type Health = Omit<WebhookHealth, "webhook">;

/** What a record tells of its webhook. */
export interface LatestRecord {
  readonly eventSeq: number;
  readonly state: DeliveryState;
  readonly lastAttemptAt: number | null;
  readonly errorReason: string | null;
  readonly errorCode: FailureCode | null;
  /** Of its event; null when that has no type. */
  readonly typeHash: number | null;
}

/** The attempt that a record shows as its last one; the status is in the log. */
export interface LastAttempt {
  readonly eventSeq: number;
  readonly at: number;
}

/** How the latest deliveries to one webhook went, and which of their attempts is the newest. */
export function summarizeHealth(latest: readonly LatestRecord[]): {
  health: Omit<Health, "lastStatusCode">;
  last: LastAttempt | null;
} {
  const records = latest.filter(({ state, errorCode }) => state !== "FAILED" || errorCode !== serverRestored.code);
  const attempted = records.flatMap(({ lastAttemptAt: at, ...record }) => (at === null ? [] : [{ ...record, at }]));
  const delivered = newest(attempted.filter(({ state }) => state === "DELIVERED"));
  // Includes records that wait for their next try.
  const failed = newest(
    attempted.filter(({ errorReason, errorCode }) => errorReason !== null && errorCode !== serverRestored.code),
  );
  const count = (state: DeliveryState) => records.filter((record) => record.state === state).length;
  return {
    health: {
      records: records.length,
      delivered: count("DELIVERED"),
      failed: count("FAILED"),
      pending: count("PENDING"),
      lastDeliveredAt: delivered?.at ?? null,
      deliveredTypes: latestOfTypes(attempted.filter(({ state }) => state === "DELIVERED")),
      lastFailedAt: failed?.at ?? null,
      lastError: failed?.errorReason ?? null,
      lastErrorCode: failed?.errorCode ?? null,
    },
    last: newest(attempted) ?? null,
  };
}

function latestOfTypes(
  delivered: readonly { readonly typeHash: number | null; readonly at: number }[],
): DeliveredTypes {
  const latest = new Map<number | null, number>();
  for (const { typeHash, at } of delivered) latest.set(typeHash, Math.max(at, latest.get(typeHash) ?? 0));
  return latest;
}

function newest<T extends { at: number }>(records: readonly T[]): T | undefined {
  return records.reduce<T | undefined>((best, record) => (best && best.at >= record.at ? best : record), undefined);
}
