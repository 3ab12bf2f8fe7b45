import { maxBatchBytes } from "../../events/ingest-routes.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/error-message.ts";
import type { BatchSender, GoodLine } from "./batch-sender.ts";
import { type Bodies, mostInBatch } from "./bodies.ts";
import { faultOf } from "./fault.ts";
import { createLineSplitter, isBlank, type Line } from "./lines.ts";
import type { Tally } from "./tally.ts";

export interface SendLinesDeps {
  input: AsyncIterable<Uint8Array>;
  sender: BatchSender;
  tally: Tally;
  bodies: Bodies;
  clock: Clock;
  strict: boolean;
  /** Ends the reading; what has been read is still sent. */
  signal: AbortSignal;
}

/** How far the input was read. */
export interface ReadThrough {
  readonly lastLine: number;
  /** Why it was not read to its end; null when it was. */
  readonly stopped: string | null;
}

/** How long the first line of a batch waits for others: `tail -f` delivers them one by one. */
const lingerMs = 200;

/**
 * Sends each line as an event, in batches. Lines are judged here first, by the server's own rules, because a line that is not
 * an event would spoil its batch. Reading waits for room, so that a fast input does not fill memory.
 */
export async function sendLines({
  input,
  sender,
  tally,
  bodies,
  clock,
  strict,
  signal,
}: SendLinesDeps): Promise<ReadThrough> {
  const splitter = createLineSplitter(bodies.longestPayload);
  const pieces = input[Symbol.asyncIterator]();
  const events = createEventQueue();
  let batch: GoodLine[] = [];
  let payloadBytes = 0;
  let lastLine = 0;
  let stopped: string | null = null;
  let cancelLinger: (() => void) | null = null;

  const interrupt = () => events.push({ kind: "stop", reason: "Interrupted." });
  if (signal.aborted) interrupt();
  signal.addEventListener("abort", interrupt);
  void sender.halted.then((reason) => events.push({ kind: "stop", reason }));

  function readPiece(): void {
    pieces.next().then(
      ({ done, value }) => events.push({ kind: "read", piece: done ? null : value }),
      (error: unknown) => events.push({ kind: "failed", error }),
    );
  }

  async function readAll(): Promise<void> {
    readPiece();
    while (stopped === null) {
      const event = await events.next();
      if (event.kind === "failed") {
        stopped = `Standard input cannot be read (${messageOf(event.error)}). Try: postrider send < events.ndjson`;
      } else if (event.kind === "stop") {
        stopped = event.reason;
      } else if (event.kind === "linger is over") {
        await sendBatch();
      } else if (event.piece === null) {
        return takeAll(splitter.end());
      } else {
        await takeAll(splitter.push(event.piece));
        readPiece();
      }
    }
    // Not awaited: the process writing to the pipe may never write again.
    void pieces.return?.();
  }

  async function takeAll(lines: readonly Line[]): Promise<void> {
    lastLine = lines.at(-1)?.number ?? lastLine;
    for (const [i, line] of lines.entries()) {
      if (stopped !== null) return tally.notSent(lines.slice(i).filter(isFilled), stopped, false);
      if (isFilled(line)) await take(line);
    }
  }

  async function take(line: Line): Promise<void> {
    const fault = faultOf(line, bodies.longestPayload);
    if (fault !== null) {
      tally.refused(line, fault);
      if (strict) stopped = `Line ${line.number} is not an event, and --strict stops at the first such line.`;
      return;
    }
    const good = line as GoodLine;
    if (bodies.batchBytes(batch.length + 1, payloadBytes + good.bytes.length) > maxBatchBytes) await sendBatch();
    batch.push(good);
    payloadBytes += good.bytes.length;
    cancelLinger ??= clock.after(lingerMs, () => events.push({ kind: "linger is over" }));
    if (batch.length >= mostInBatch) await sendBatch();
  }

  async function sendBatch(): Promise<void> {
    cancelLinger?.();
    cancelLinger = null;
    const lines = batch;
    batch = [];
    payloadBytes = 0;
    if (lines.length > 0) await sender.send(lines);
  }

  await readAll();
  await sendBatch();
  await sender.whenIdle();
  return { lastLine, stopped };
}

type Event =
  | { readonly kind: "read"; readonly piece: Uint8Array | null }
  | { readonly kind: "failed"; readonly error: unknown }
  | { readonly kind: "linger is over" }
  | { readonly kind: "stop"; readonly reason: string };

/** What happens, in order. `Promise.race` would retain a little of every line until the end of the input. */
function createEventQueue() {
  const events: Event[] = [];
  let wake = () => {};
  return {
    push(event: Event): void {
      events.push(event);
      wake();
    },
    async next(): Promise<Event> {
      for (;;) {
        const event = events.shift();
        if (event) return event;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}

const isFilled = (line: Line) => !isBlank(line);
