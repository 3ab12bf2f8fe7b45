import type { Clock } from "../lib/clock.ts";
import { type Channel, createChannels } from "./stream-channel.ts";
import { encodeMessage, type StreamLog } from "./stream-log.ts";

/** The stream log of a process that runs alone, in its memory. Ids are `<process start>-<n>`; no message outlives the process. */
export function createMemoryLog(clock: Pick<Clock, "now">): StreamLog {
  const processStart = clock.now();
  const watched = new Map<string, { readonly channel: Channel; onMore(): void }>();
  const channels = createChannels();
  let lastNumber = 0;

  /** Numbers are shared by all tenants, so an id is never given twice. */
  const nextNumber = () => ++lastNumber;
  const idOf = (number: number) => `${processStart}-${number}`;

  return {
    append(tenantId, kind, data) {
      const found = watched.get(tenantId);
      if (!found) return;
      const number = nextNumber();
      channels.push(found.channel, number, encodeMessage(kind, idOf(number), data()));
      found.onMore();
    },

    watch(tenantId, onMore) {
      // It takes a number of its own: whatever went unrecorded lies below it, so no client resumes across that gap.
      const channel = channels.add(nextNumber());
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
          channels.remove(channel);
        },
      };
    },
  };
}
