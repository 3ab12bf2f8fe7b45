import { DomainError, invalid, invalidBody } from "../domain/errors.ts";
import type { Place } from "./room.ts";

const tooLarge = (maxBytes: number) =>
  new DomainError({
    kind: "too_large",
    code: "body_too_large",
    message: `The body must be at most ${maxBytes} bytes.`,
  });

const empty = new Uint8Array(0);

/** The most that the listener reads from a connection at a time. */
const pieceBytes = 512 * 1024;

/**
 * Reads a body, counting bytes as they arrive: the length that a client declares is only a first hint, and a chunked body has
 * none.
 * @param place grows before anything is kept
 * @throws too_large `body_too_large`; unavailable `too_many_bodies`; invalid `body_incomplete`, which no client ever sees: it
 *   has gone, or the listener has already rejected what was not HTTP
 */
export function readBody(request: Request, maxBytes: number, place: Pick<Place, "grow">): Promise<Uint8Array> {
  const declared = declaredLength(request.headers);
  if (declared === null || declared > maxBytes) {
    return readCounting(request, declared, maxBytes, place).catch(refuseIncomplete);
  }
  // Bun 1.4.5 reserves the announced length, up to 256 KiB, when the first bytes arrive.
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
  // A body without a length is read to its end, too; the listener bounds it.
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
 * Reads a body to its end and discards it. Normally the listener itself drops what comes after a response, at no cost. But
 * when the client asked for the connection to be closed, the listener closes it immediately, and closing with bytes unread
 * resets it, so the response may be lost. Where there is no room to read the rest, we take that risk: 413 goes before 503
 * (rules, section 3).
 */
async function discard(request: Request, place: Pick<Place, "grow">): Promise<void> {
  try {
    place.grow(pieceBytes);
  } catch {
    return;
  }
  if (request.body) for await (const _ of request.body);
}

/** Null when absent, or when it was sent twice and so arrives as a list ("14, 14"), which the listener lets through. */
function declaredLength(headers: Headers): number | null {
  const declared = headers.get("content-length");
  return declared !== null && /^\d+$/.test(declared) ? Number(declared) : null;
}

const endsConnection = (headers: Headers) => /\bclose\b/i.test(headers.get("connection") ?? "");

const types = {
  json: { name: "application/json", pattern: /^application\/(?:json|[\w.+-]+\+json)\s*(?:;|$)/i },
  form: { name: "application/x-www-form-urlencoded", pattern: /^application\/x-www-form-urlencoded\s*(?:;|$)/i },
};

/** Rules, section 3: either no type or the wanted one (application/json or …+json, unless it is a form), and no encoding. */
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

/** An escape that may be half of a surrogate pair (RFC 8259, section 8.2). */
const halfCharacter = /\\u[dD][89a-fA-F]/;

const wellFormed = (_key: string, value: unknown) => (typeof value === "string" ? value.toWellFormed() : value);

/**
 * Parses a management body. Ingestion never comes here: its bytes are stored as they are. A lone surrogate becomes U+FFFD
 * here, as it would in the database, so that a response never differs from what is stored.
 */
export function parseJson(bytes: Uint8Array): unknown {
  const text = decode(bytes);
  try {
    return JSON.parse(text, halfCharacter.test(text) ? wellFormed : undefined);
  } catch {
    throw invalidBody("is not valid JSON", "invalid_json");
  }
}

/** Parses a posted form (URL standard, section 5.1); any text is a valid form. */
export const parseForm = (bytes: Uint8Array): URLSearchParams => new URLSearchParams(decode(bytes));

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalidBody("is not valid UTF-8", "invalid_utf8");
  }
}
