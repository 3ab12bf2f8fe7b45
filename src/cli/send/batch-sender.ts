import type { Bodies } from "./bodies.ts";
import type { Line } from "./lines.ts";
import type { Post } from "./poster.ts";
import type { Tally } from "./tally.ts";

/** A line that is an event. */
export type GoodLine = Line & { readonly bytes: Uint8Array };

export interface BatchSenderDeps {
  post: Post;
  tally: Tally;
  bodies: Bodies;
  concurrency: number;
  /** Whether a line that is refused halts the sender. */
  strict: boolean;
}

export interface BatchSender {
  /** Starts to send lines as one batch, as soon as there is room for it. */
  send(lines: readonly GoodLine[]): Promise<void>;
  /** Resolves when no batch is under way. */
  whenIdle(): Promise<void>;
  /** Resolves with the reason when nothing more can be sent; further lines are counted as not sent. */
  readonly halted: Promise<string>;
  /** That reason; null while there is none. */
  readonly haltReason: string | null;
}

/**
 * Sends batches, a few at a time. A batch is accepted whole or not at all, so one that the server refuses is halved until the
 * offending line is found.
 */
export function createBatchSender({ post, tally, bodies, concurrency, strict }: BatchSenderDeps): BatchSender {
  const underWay = new Set<Promise<void>>();
  const { promise: halted, resolve: halt } = Promise.withResolvers<string>();
  let reason: string | null = null;

  function haltFor(cause: string): void {
    reason ??= cause;
    halt(reason);
  }

  async function sendNow(lines: readonly GoodLine[]): Promise<void> {
    if (reason !== null) return tally.notSent(lines, reason, false);
    const outcome = await post("/v1/ingest/batch", bodies.batch(lines.map(({ bytes }) => bytes)));
    if (outcome.kind === "accepted") return tally.accepted(lines, idsIn(outcome.reply.json));
    if (outcome.kind === "stopped") {
      haltFor(outcome.message);
      return tally.notSent(lines, outcome.message, outcome.mayHaveArrived);
    }
    const [only, ...more] = lines;
    if (only === undefined) return;
    if (more.length === 0) {
      tally.refused(only, aboutLine(outcome.message));
      if (strict) haltFor(`Line ${only.number} was refused, and --strict stops at the first such line.`);
      return;
    }
    const middle = Math.ceil(lines.length / 2);
    await sendNow(lines.slice(0, middle));
    await sendNow(lines.slice(middle));
  }

  return {
    async send(lines) {
      while (underWay.size >= concurrency) await Promise.race(underWay);
      const sending: Promise<void> = sendNow(lines).finally(() => underWay.delete(sending));
      underWay.add(sending);
    },
    whenIdle: async () => void (await Promise.all(underWay)),
    halted,
    get haltReason() {
      return reason;
    },
  };
}

/** How the server names the only entry of a batch, which nobody sees. */
const onlyEntry = "events[0].";
const onlyPayload = `${onlyEntry}payload `;

const aboutLine = (message: string) => message.replace(onlyPayload, "The event ").replace(onlyEntry, "");

function idsIn(json: unknown): readonly string[] {
  const { eventIds } = (json ?? {}) as { eventIds?: readonly string[] };
  return Array.isArray(eventIds) ? eventIds : [];
}
