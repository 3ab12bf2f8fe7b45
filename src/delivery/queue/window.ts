import type { DueDelivery } from "../../domain/delivery.ts";

/** How much of the table is held in memory. What finds no room stays there until its turn. */
export interface Window {
  readonly deliveries: number;
  /**
   * Backlogs may have half of it; from then on they are loaded in small pieces only. With all of it, the backlogs of
   * 1,000 webhooks sent what was new to the table, to wait there for half a second and more.
   */
  readonly isHalfFull: boolean;
  /** For anything at all; how long a payload is only shows when it arrives. */
  readonly hasRoom: boolean;
  hasRoomFor(delivery: DueDelivery): boolean;
  hold(delivery: DueDelivery): void;
  letGo(delivery: DueDelivery): void;
}

const maxDeliveries = 8192;
const maxBytes = 32 * 1024 * 1024;
/** What a request may hold besides its payload without having to be let go. */
const smallRequestBytes = 1024;

export function createWindow(): Window {
  let deliveries = 0;
  let bytes = 0;
  return {
    get deliveries() {
      return deliveries;
    },
    get isHalfFull() {
      return deliveries >= maxDeliveries / 2 || bytes >= maxBytes / 2;
    },
    get hasRoom() {
      return deliveries < maxDeliveries && bytes < maxBytes;
    },
    hasRoomFor: ({ payload }) => deliveries < maxDeliveries && bytes + payload.length < maxBytes,
    hold({ payload }) {
      deliveries += 1;
      bytes += payload.length;
    },
    letGo({ payload }) {
      deliveries -= 1;
      bytes -= payload.length;
    },
  };
}

/**
 * A fresh payload is a view of the request that it came in. While it waits, it would keep all of that in memory: 5 MiB of
 * a batch for the shortest of its events, and the window would not know.
 */
export function withoutRequest(delivery: DueDelivery): DueDelivery {
  const { payload } = delivery;
  const isMostOfIt = payload.buffer.byteLength <= 2 * payload.length + smallRequestBytes;
  return isMostOfIt ? delivery : { ...delivery, payload: payload.slice() };
}
