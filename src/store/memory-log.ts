import type { Clock } from "../lib/clock.ts";
import { allChannelsBytes, type Channel, createChannel } from "./stream-channel.ts";
import { encodeMessage, type StreamLog } from "./stream-log.ts";

/** The stream log of a process that runs alone, in its memory. Ids are `<process start>-<n>`; no message outlives the process. */
export function createMemoryLog(clock: Pick<Clock, "now">): StreamLog {
  const processStart = clock.now();
  const watched = new Map<string, { readonly channel: Channel; onMore(): void }>();
  let lastNumber = 0;
  /** What the channels of all tenants take, in bytes. */
  let heldBytes = 0;

  /** Numbers are shared by all tenants, so an id is never given twice. */
  const nextNumber = () => ++lastNumber;
  const idOf = (number: number) => `${processStart}-${number}`;

  function push(channel: Channel, number: number, message: Uint8Array<ArrayBuffer>): void {
    const before = channel.heldBytes;
    channel.push(number, message);
    heldBytes += channel.heldBytes - before;
    while (heldBytes > allChannelsBytes && halveLargest()) {}
  }

  /**
   * The tenant that holds the most gives way, so that a few with long messages cost the others nothing.
   * @returns false when nothing is held
   */
  function halveLargest(): boolean {
    let largest: Channel | undefined;
    for (const { channel } of watched.values()) {
      if (channel.heldBytes > (largest?.heldBytes ?? 0)) largest = channel;
    }
    if (!largest) return false;
    heldBytes -= largest.heldBytes;
    largest.halve();
    heldBytes += largest.heldBytes;
    return true;
  }

  return {
    append(tenantId, kind, data) {
      const found = watched.get(tenantId);
      if (!found) return;
      const number = nextNumber();
      push(found.channel, number, encodeMessage(kind, idOf(number), data()));
      found.onMore();
    },

    watch(tenantId, onMore) {
      // It takes a number of its own: whatever went unrecorded lies below it, so no client resumes across that gap.
      const channel = createChannel(nextNumber());
      watched.set(tenantId, { channel, onMore });
      return {
        get first() {
          return channel.first;
        },
        get end() {
          return channel.end;
        },
        chunkFrom: channel.chunkFrom,
        positionAfter(id) {
          const [, start, number] = /^(\d{1,15})-(\d{1,15})$/.exec(id) ?? [];
          if (Number(start) !== processStart || Number(number) > lastNumber) return null;
          return channel.positionAfter(Number(number));
        },
        endId: () => idOf(nextNumber()),
        ready: () => null,
        forget() {
          if (watched.get(tenantId)?.channel !== channel) return;
          watched.delete(tenantId);
          heldBytes -= channel.heldBytes;
        },
      };
    },
  };
}
