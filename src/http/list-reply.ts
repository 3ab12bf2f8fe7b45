import type { DomainError } from "../domain/errors.ts";
import type { Cursor } from "../store/cursor.ts";
import { answerStepBytes, type Chunks, chunkBytes, smallAnswerBytes } from "./answers.ts";
import type { Reply } from "./endpoint.ts";

/** A JSON text with a list in it. */
export interface JsonList<Entry> {
  /** The text before the first entry, up to and including the opening bracket. */
  readonly before: string;
  readonly entries: Cursor<Entry>;
  /** The JSON text of an entry, in pieces; bytes are UTF-8 and are sent as they are. */
  readonly write: (entry: Entry) => readonly (string | Uint8Array)[];
  readonly after: string;
}

/** From this length on, bytes are worth a chunk of their own, which saves two copies. */
const largePieceBytes = 16 * 1024;

const encoder = new TextEncoder();
/** Decodes what was verified as UTF-8 on arrival; a byte order mark inside would be the tenant's own. */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

const textOf = (piece: string | Uint8Array) => (typeof piece === "string" ? piece : utf8.decode(piece));

/** Writes an entry as the JSON of its body in the API. */
export const writeJson =
  <Entry>(toBody: (entry: Entry) => unknown) =>
  (entry: Entry) => [JSON.stringify(toBody(entry))];

export interface ListReplyOptions {
  headers?: Record<string, string>;
  /** Thrown instead of an answer with an empty list. */
  ifEmpty?: () => DomainError;
}

/** Answers with a list: whole when it is small, which a single entry need not be; otherwise a step at a time as it is taken. */
export async function listReply<Entry>(
  list: JsonList<Entry>,
  { headers, ifEmpty }: ListReplyOptions = {},
): Promise<Reply> {
  const { before, entries, write, after } = list;
  const first = await entries.next(smallAnswerBytes);
  if (ifEmpty && first.length === 0) throw ifEmpty();
  const reply = { status: 200, ...(headers && { headers }) };
  const written = first.map(write);
  const size = written.flat().reduce((sum, piece) => sum + piece.length, 0);
  if (!entries.ended || size > smallAnswerBytes) return { ...reply, chunks: chunksOf(list, written), heldBytes: size };
  const texts = written.map((pieces) => pieces.map(textOf).join(""));
  return { ...reply, text: `${before}${texts.join(",")}${after}` };
}

/** @param first the entries of the first step, written; those of later ones are written as they are sent */
async function* chunksOf<Entry>(
  { before, entries, write, after }: JsonList<Entry>,
  first: readonly (readonly (string | Uint8Array)[])[],
): Chunks {
  let text = before;
  let separator = "";
  let step: Iterable<readonly (string | Uint8Array)[]> | null = first;
  while (step !== null) {
    for (const pieces of step) {
      text += separator;
      separator = ",";
      for (const piece of pieces) {
        if (typeof piece === "string" || piece.length < largePieceBytes) {
          text += textOf(piece);
          continue;
        }
        yield encoder.encode(text);
        text = "";
        yield piece;
      }
      if (text.length < chunkBytes) continue;
      yield encoder.encode(text);
      text = "";
    }
    const next: readonly Entry[] = await entries.next(answerStepBytes);
    step = next.length === 0 ? null : next.values().map(write);
  }
  yield encoder.encode(text + after);
}
