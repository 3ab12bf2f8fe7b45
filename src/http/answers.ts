import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { createRoom } from "./room.ts";

/** How much of a list a response holds at a time. */
export const answerStepBytes = 2 ** 20;

/** A response up to this size goes out whole and always has room, so that no flood can keep an ordinary page out. */
export const smallAnswerBytes = 64 * 1024;

/** The memory that all responses in progress may take together, counted as the most that each of them may hold. */
export const answerRoomBytes = 64 * 2 ** 20;

/** The share of one account. */
export const answerRoomOfOneBytes = 24 * 2 ** 20;

/** Rules, section 15: a reader that takes nothing for this long is cut off. */
export const readerPatienceMs = 30_000;

/** A response in parts: the next part is made once the last one has been taken. Each part has its own buffer. */
export type Chunks = AsyncGenerator<Uint8Array, void, undefined>;

/** Large answers on their way to their readers. */
export interface Answers {
  /**
   * Begins a response, which holds one part at a time: Bun 1.4.5 asks a response's stream for the next chunk only when the
   * socket has taken the last one.
   * @param owner the account's id; undefined for a client without one
   * @param bytes how many of the response are in memory already, for one that holds more than a step
   * @throws unavailable `too_many_answers`, before any more is read
   */
  begin(owner: string | undefined, chunks: Chunks, bytes?: number): ReadableStream<Uint8Array>;
  /** Aborts all responses of an account. */
  closeTenant(tenantId: string): void;
  /** Aborts all of them. */
  closeAll(): void;
  readonly underWay: number;
}

export interface AnswersDeps {
  clock: Pick<Clock, "after">;
  log: Log;
  /** A step may end with a single entry of this size. The largest of a batch is longer, and counted once it is there. */
  largestEntryBytes: number;
  /** @default readerPatienceMs */
  patienceMs?: number;
}

interface Answer {
  readonly owner: string | undefined;
  /** Breaks the connection, so that the client does not mistake what it has received for the whole. */
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
  /** A step, its last entry, and the JSON of that entry. */
  const stepBytes = answerStepBytes + 2 * largestEntryBytes;
  const underWay = new Set<Answer>();
  let lastTurn: Promise<void> = Promise.resolve();

  /**
   * Produces one part of one response per turn of the event loop. A reader that keeps up asks for the next part immediately,
   * so without this twelve such readers would shut out every other request until each had received a whole step.
   */
  function turn(): Promise<void> {
    lastTurn = lastTurn.then(() => new Promise((resolve) => setImmediate(resolve)));
    return lastTurn;
  }

  function begin(owner: string | undefined, chunks: Chunks, bytes = 0): ReadableStream<Uint8Array> {
    const place = room.enter(owner);
    let countedBytes = Math.max(stepBytes, bytes);
    place.grow(countedBytes);
    let cancelTimer = () => {};
    let last: Uint8Array | undefined;
    let controller: ReadableStreamDefaultController<Uint8Array> | undefined;

    /** @returns false when the response had already ended */
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

    /** @returns false when there is no room for a part of this length */
    function hasRoomFor(length: number): boolean {
      if (length <= countedBytes) return true;
      try {
        place.grow(length - countedBytes);
      } catch {
        return false;
      }
      countedBytes = length;
      return true;
    }

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
            } else if (!hasRoomFor(value.length)) {
              log.write("info", "answer.cut_off", { tenant: owner, bytes: value.length });
              answer.breakOff("There is no room for so large an entry next to other answers");
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

/** Frees the buffer right away: left as garbage, what twelve readers had taken grew to 200 MB before the collector ran. */
function giveBack(taken: Uint8Array | undefined): void {
  if (taken?.buffer instanceof ArrayBuffer && taken.length === taken.buffer.byteLength) taken.buffer.transfer(0);
}

/** Roughly what goes to the socket in one piece. */
export const chunkBytes = 128 * 1024;

/** What is there as a whole, in parts. */
export async function* chunksOfBytes(bytes: Uint8Array): Chunks {
  for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.slice(at, at + chunkBytes);
}
