import { DomainError, invalid, invalidBody } from "../domain/errors.ts";
import type { Place } from "./room.ts";

const tooLarge = (maxBytes: number) =>
  new DomainError({
    kind: "too_large",
    code: "body_too_large",
    message: `The body must be at most ${maxBytes} bytes.`,
  });

const empty = new Uint8Array(0);

/** What the listener reads from a connection at a time, at most. */
const pieceBytes = 512 * 1024;

/**
 * Reads a body, counting as it comes: the length that a client declares is only a first hint, and a chunked body has none.
 * @param place grows before anything is kept
 * @throws too_large `body_too_large`; unavailable `too_many_bodies`; invalid `body_incomplete`, which nobody reads: the
 *   client has gone, or the listener has answered what is no HTTP
 */
export function readBody(request: Request, maxBytes: number, place: Pick<Place, "grow">): Promise<Uint8Array> {
  const declared = declaredLength(request.headers);
  if (declared === null || declared > maxBytes) {
    return readCounting(request, declared, maxBytes, place).catch(refuseIncomplete);
  }
  // Bun 1.4.5 reserves what is announced, up to 256 KiB, with the first bytes that come.
  place.grow(declared);
  return request.bytes().catch(refuseIncomplete);
}

function refuseIncomplete(error: unknown): never {
  if (error instanceof DomainError) throw error;
  throw invalid("The connection closed before the body was complete.", "body_incomplete");
}

async function readCounting(
  request: Request,
  declared: number | null,
  maxBytes: number,
  place: Pick<Place, "grow">,
): Promise<Uint8Array> {
  if (declared !== null) {
    if (endsConnection(request.headers)) await discard(request, place);
    throw tooLarge(maxBytes);
  }
  if (!request.body) return empty;
  const chunks: Uint8Array[] = [];
  let size = 0;
  // Also of what has no length all is read; the listener sets the end of it.
  for await (const chunk of request.body) {
    size += chunk.length;
    if (size <= maxBytes) {
      place.grow(chunk.length);
      chunks.push(chunk);
    } else chunks.length = 0;
  }
  if (size > maxBytes) throw tooLarge(maxBytes);
  return Buffer.concat(chunks, size);
}

/**
 * Reads a body to its end and keeps nothing of it. What comes after an answer is forgotten by the listener itself, at no
 * cost. But it ends the connection at once for whoever asks for that, and one that ends with bytes unread is reset, so that
 * the answer may be lost. Where there is no room to read it, that is risked: 413 goes before 503 (rules, section 3).
 */
async function discard(request: Request, place: Pick<Place, "grow">): Promise<void> {
  try {
    place.grow(pieceBytes);
  } catch {
    return;
  }
  if (request.body) for await (const _ of request.body);
}

/** Null without one, and for one that was sent twice: a list ("14, 14"), which the listener lets through. */
function declaredLength(headers: Headers): number | null {
  const declared = headers.get("content-length");
  return declared !== null && /^\d+$/.test(declared) ? Number(declared) : null;
}

const endsConnection = (headers: Headers) => /\bclose\b/i.test(headers.get("connection") ?? "");

const types = {
  json: { name: "application/json", pattern: /^application\/(?:json|[\w.+-]+\+json)\s*(?:;|$)/i },
  form: { name: "application/x-www-form-urlencoded", pattern: /^application\/x-www-form-urlencoded\s*(?:;|$)/i },
};

/** Rules, section 3: no type or the wanted one (application/json or …+json, unless it is a form), and no encoding. */
export function checkContentType(headers: Headers, wanted: keyof typeof types): void {
  const type = headers.get("content-type");
  const encoding = headers.get("content-encoding");
  if (encoding !== null && encoding !== "") {
    const plain = wanted === "json" ? "as plain JSON" : "unencoded";
    throw unsupported(`Content-Encoding "${encoding.slice(0, 40)}" is not supported; send the body ${plain}.`);
  }
  const { name, pattern } = types[wanted];
  if (type === null || type === "" || pattern.test(type)) return;
  throw unsupported(`Content-Type must be ${name}.`);
}

const unsupported = (message: string) =>
  new DomainError({ kind: "unsupported_media_type", code: "unsupported_media_type", message });

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** An escape that may be half of a character beyond the basic plane (RFC 8259, section 8.2). */
const halfCharacter = /\\u[dD][89a-fA-F]/;

const wellFormed = (_key: string, value: unknown) => (typeof value === "string" ? value.toWellFormed() : value);

/**
 * Parses a management body. Ingestion never comes here: its bytes are stored as they are. A half of a character becomes
 * U+FFFD at once, as the database would make it, so that an answer never says something else than what is kept.
 */
export function parseJson(bytes: Uint8Array): unknown {
  const text = decode(bytes);
  try {
    return JSON.parse(text, halfCharacter.test(text) ? wellFormed : undefined);
  } catch {
    throw invalidBody("is not valid JSON", "invalid_json");
  }
}

/** Parses what a form posts (URL standard, section 5.1); any text is a form. */
export const parseForm = (bytes: Uint8Array): URLSearchParams => new URLSearchParams(decode(bytes));

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalidBody("is not valid UTF-8", "invalid_utf8");
  }
}
