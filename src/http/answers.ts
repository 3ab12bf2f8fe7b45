import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { createRoom } from "./room.ts";

/** How much of what it lists an answer holds at a time. */
export const answerStepBytes = 2 ** 20;

/** An answer up to here goes out whole and always has room, so that no flood keeps an ordinary page out. */
export const smallAnswerBytes = 64 * 1024;

/** The memory that answers under way may take together, counted as the most that each of them may hold. */
export const answerRoomBytes = 64 * 2 ** 20;

/** The share of one account. */
export const answerRoomOfOneBytes = 24 * 2 ** 20;

/** Rules, section 15: a reader that takes nothing for so long is cut off. */
export const readerPatienceMs = 30_000;

/** An answer in parts: the next one is made when the last one has been taken. Each part has a buffer of its own. */
export type Chunks = AsyncGenerator<Uint8Array, void, undefined>;

/** Large answers on their way to their readers. */
export interface Answers {
  /**
   * Begins an answer, which holds one part at a time: Bun 1.4.5 asks a response's stream for the next chunk only when the
   * socket has taken the last one.
   * @param owner the account's id; undefined for whoever has none
   * @throws unavailable `too_many_answers`, before anything is read
   */
  begin(owner: string | undefined, chunks: Chunks): ReadableStream<Uint8Array>;
  /** Breaks off all answers of an account. */
  closeTenant(tenantId: string): void;
  /** Breaks off all of them. */
  closeAll(): void;
  readonly underWay: number;
}

export interface AnswersDeps {
  clock: Pick<Clock, "after">;
  log: Log;
  /** A step may end with one entry that is this large. */
  largestEntryBytes: number;
  /** @default readerPatienceMs */
  patienceMs?: number;
}

interface Answer {
  readonly owner: string | undefined;
  /** Ends the connection, so that its client does not take what it has for the whole. */
  breakOff(reason: string): void;
}

export function createAnswers({ clock, log, largestEntryBytes, patienceMs = readerPatienceMs }: AnswersDeps): Answers {
  const room = createRoom({
    what: "responses",
    code: "too_many_answers",
    allBytes: answerRoomBytes,
    ofOneBytes: answerRoomOfOneBytes,
    smallEnoughBytes: 0,
  });
  /** A step, its last entry, and what that is as JSON. */
  const heldBytes = answerStepBytes + 2 * largestEntryBytes;
  const underWay = new Set<Answer>();
  let lastTurn: Promise<void> = Promise.resolve();

  /**
   * One part of one answer in each turn of the event loop. A reader that keeps up asks for the next one at once, so twelve
   * of them would let nobody else's request in before each has had a whole step.
   */
  function turn(): Promise<void> {
    lastTurn = lastTurn.then(() => new Promise((resolve) => setImmediate(resolve)));
    return lastTurn;
  }

  function begin(owner: string | undefined, chunks: Chunks): ReadableStream<Uint8Array> {
    const place = room.enter(owner);
    place.grow(heldBytes);
    let cancelTimer = () => {};
    let last: Uint8Array | undefined;
    let controller: ReadableStreamDefaultController<Uint8Array> | undefined;

    /** @returns false when the answer has ended before */
    function end(): boolean {
      cancelTimer();
      place.leave();
      void chunks.return().catch(() => {});
      return underWay.delete(answer);
    }

    const answer: Answer = {
      owner,
      breakOff(reason) {
        if (end()) controller?.error(new Error(reason));
      },
    };

    const waitForReader = () => {
      cancelTimer = clock.after(patienceMs, () => {
        log.write("info", "answer.cut_off", { tenant: owner, afterMs: patienceMs });
        answer.breakOff("The client has stopped reading");
      });
    };

    underWay.add(answer);
    waitForReader();
    return new ReadableStream<Uint8Array>(
      {
        start(started) {
          controller = started;
        },
        async pull() {
          cancelTimer();
          giveBack(last);
          await turn();
          try {
            const { done, value } = await chunks.next();
            if (!underWay.has(answer)) return;
            if (done) {
              end();
              controller?.close();
            } else {
              last = value;
              controller?.enqueue(value);
              waitForReader();
            }
          } catch (error) {
            if (!underWay.has(answer)) return;
            log.write("error", "answer.broken_off", { tenant: owner, error: String(error) });
            answer.breakOff("The rest of the response cannot be read");
          }
        },
        cancel: () => void end(),
      },
      { highWaterMark: 0 },
    );
  }

  function closeWhere(isMeant: (answer: Answer) => boolean, reason: string): void {
    for (const answer of [...underWay]) if (isMeant(answer)) answer.breakOff(reason);
  }

  return {
    begin,
    closeTenant: (tenantId) => closeWhere(({ owner }) => owner === tenantId, "The account was deleted"),
    closeAll: () => closeWhere(() => true, "The server is shutting down"),
    get underWay() {
      return underWay.size;
    },
  };
}

/** At once: as garbage, what twelve readers had taken came to 200 MB before the collector looked for it. */
function giveBack(taken: Uint8Array | undefined): void {
  if (taken?.buffer instanceof ArrayBuffer && taken.length === taken.buffer.byteLength) taken.buffer.transfer(0);
}

/** What goes to the socket at once, about. */
export const chunkBytes = 128 * 1024;

/** A text that is there already, in parts. */
export async function* chunksOfText(text: string): Chunks {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.slice(at, at + chunkBytes);
}
