import { createParser } from "eventsource-parser";
import type { Random } from "../../../../src/lib/random.ts";
import type { Incarnation } from "./incarnation.ts";
import type { Findings } from "./invariants.ts";
import type { Account } from "./ledger.ts";

/**
 * A client that watches its account's stream, leaves it and comes back with the id of the last message that it has. It
 * compares what it hears with what was published.
 */
export function createListener(account: Account, random: Random, findings: Findings) {
  /** All messages of this run of the program, as `kind data`. */
  let published: string[] = [];
  /** Index of the next message to be heard. */
  let position = 0;
  /** Where a stream goes on that says that messages are missing. */
  let resyncPosition = 0;
  let lastEventId: string | undefined;
  let open: { cancel(): void } | null = null;
  const seen = { messages: 0, resyncs: 0 };

  function hear(kind: string, data: string): void {
    if (kind === "resync") {
      seen.resyncs += 1;
      position = resyncPosition;
      return;
    }
    seen.messages += 1;
    const message = `${kind} ${data}`;
    const expected = published[position];
    findings.expect(expected === message, "stream", () => `heard ${message}, published was ${expected}`);
    position += 1;
  }

  async function read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const parser = createParser({
      onEvent({ event = "", id, data }) {
        lastEventId = id;
        hear(event, data);
      },
    });
    const reader = stream.getReader();
    let isOver = false;
    const mine = {
      cancel() {
        isOver = true;
        void reader.cancel().catch(() => {});
      },
    };
    open = mine;
    const decoder = new TextDecoder();
    for (;;) {
      const { done, value } = await reader.read();
      if (isOver) return;
      if (done) break;
      parser.feed(decoder.decode(value, { stream: true }));
    }
    if (open === mine) open = null;
  }

  return {
    account,
    seen,
    get isOpen() {
      return open !== null;
    },
    published: (kind: string, data: Record<string, unknown>) => void published.push(`${kind} ${JSON.stringify(data)}`),

    /** Opens the stream, mostly where it left off, or leaves it. */
    toggle({ hub }: Incarnation, now: number): void {
      if (open) {
        open.cancel();
        open = null;
        return;
      }
      const resumes = lastEventId !== undefined && random.chance(0.8);
      if (!resumes) {
        lastEventId = undefined;
        position = published.length;
      }
      resyncPosition = published.length;
      const stream = hub.subscribe(account.id, {
        ...(resumes && lastEventId !== undefined && { lastEventId }),
        sessionId: "s1",
        endsAt: now + 2 * 60 * 60 * 1000,
        stillValid: async () => !account.isDeleted,
      });
      void read(stream).catch(() => {
        open = null;
      });
    },

    /** The program is down, and its streams with it. */
    cutOff(): void {
      open?.cancel();
      open = null;
      published = [];
      position = 0;
    },
  };
}

export type Listener = ReturnType<typeof createListener>;
