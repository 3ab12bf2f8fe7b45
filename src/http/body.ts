import { DomainError, invalid } from "../errors.ts";

const tooLarge = (maxBytes: number) =>
  new DomainError({
    kind: "too_large",
    code: "body_too_large",
    message: `The body may have at most ${maxBytes} bytes.`,
  });

const empty = new Uint8Array(0);

/**
 * Reads a body, counting as it comes: the length that a client declares is only a first hint, and a chunked body has none.
 * @throws too_large `body_too_large`
 */
export async function readBody(request: Request, maxBytes: number): Promise<Uint8Array> {
  const declared = request.headers.get("content-length");
  if (declared !== null) {
    if (Number(declared) > maxBytes) throw tooLarge(maxBytes);
    return new Uint8Array(await request.arrayBuffer());
  }
  if (!request.body) return empty;
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

const jsonType = /^application\/(?:json|[\w.+-]+\+json)\s*(?:;|$)/i;

/** Decisions, section 3: no type, application/json or …+json, and no encoding. */
export function checkContentType(headers: Headers): void {
  const type = headers.get("content-type");
  const encoding = headers.get("content-encoding");
  if (encoding !== null && encoding !== "") {
    throw unsupported(`Content-Encoding "${encoding.slice(0, 40)}" is not supported; send the body as plain JSON.`);
  }
  if (type === null || type === "" || jsonType.test(type)) return;
  throw unsupported("Content-Type must be application/json.");
}

const unsupported = (message: string) =>
  new DomainError({ kind: "unsupported_media_type", code: "unsupported_media_type", message });

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Parses a management body. Ingestion never comes here: its bytes are stored as they are. */
export function parseJson(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw invalid("The body is not valid UTF-8.", "invalid_utf8");
  }
  try {
    return JSON.parse(text);
  } catch {
    throw invalid("The body is not valid JSON.", "invalid_json");
  }
}
