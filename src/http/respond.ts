import { DomainError, requestAbandoned } from "../domain/errors.ts";
import { withoutSales } from "../domain/standing.ts";
import { stackOf } from "../lib/error-message.ts";
import type { Log } from "../lib/log.ts";
import { type Answers, type Chunks, chunksOfBytes, smallAnswerBytes } from "./answers.ts";
import type { Identity } from "./auth.ts";
import { checkContentType, parseForm, parseJson, readBody } from "./body.ts";
import { type Access, type Caller, type ErasedEndpoint, type Reply, smallBodyBytes } from "./endpoint.ts";
import { errorResponse, securityHeaders } from "./errors.ts";
import { clientRequestId, createRequestIds } from "./request-id.ts";
import type { Place, Room } from "./room.ts";
import { checkView } from "./session.ts";
import { check } from "./validation.ts";

export interface ResponderDeps {
  authenticate(access: Access, request: Request, address: string | undefined): Identity | Promise<Identity>;
  clientAddress(socketAddress: string, headers: Headers): string;
  /** Called with the first forwarded request among those whose address nobody needs. */
  onForwarded?(socketAddress: string, headers: Headers): void;
  bodyRoom: Room;
  answers: Pick<Answers, "begin">;
  log: Log;
  /** For metrics: called after every response. */
  onAnswer?(endpoint: ErasedEndpoint, status: number): void;
  /** For metrics: called with the code of every error response. */
  onRefusal?(code: string): void;
  /** For the log. @default a clock that stands still */
  monotonicMs?(): number;
  /** Whether the server takes payments. @default true */
  isSelling?: boolean;
}

export interface IncomingCall {
  request: Request;
  params: Record<string, string>;
  /** Asks the system. */
  socketAddress(): string;
}

/** What the log says about a request, filled in as it becomes known. */
interface Trace {
  readonly id: string;
  code: string | null;
  tenantId: string | null;
  /** Size of the response body; null for a stream, which has no end yet, and for an error. */
  bytes: number | null;
  address: string | undefined;
}

/**
 * Answers one request through its endpoint, in the order of judgement (rules, section 3): who calls (401), how often (429),
 * the body's size (413), its type (415), its content (400); the rest is up to the handler.
 */
export function createResponder(deps: ResponderDeps) {
  const { authenticate, clientAddress, onForwarded, bodyRoom, answers, log, onAnswer, onRefusal } = deps;
  const { monotonicMs = () => 0, isSelling = true } = deps;
  const nextRequestId = createRequestIds();
  /** With an API key: to look for the header takes 45 ns, and to ask for the address, which is done once, a microsecond. */
  let hasSeenForwarded = onForwarded === undefined;

  return async function respond(endpoint: ErasedEndpoint, call: IncomingCall): Promise<Response> {
    const trace: Trace = { id: nextRequestId(), code: null, tenantId: null, bytes: null, address: undefined };
    const isLogged = log.enabled("debug");
    const startedAt = isLogged ? monotonicMs() : 0;
    let response: Response;
    try {
      const reply = await answer(endpoint, call, trace, isLogged);
      if (isLogged) trace.bytes = bytesOf(reply);
      response = toResponse(reply, trace.id);
    } catch (error) {
      trace.code = error instanceof DomainError ? error.code : "internal_error";
      if (!(error instanceof DomainError)) {
        const text = stackOf(error);
        const { method, path } = endpoint;
        log.write("error", "request.failed", { requestId: trace.id, method, path, error: text });
      }
      response = errorResponse(error instanceof DomainError && !isSelling ? withoutSales(error) : error, trace.id);
      onRefusal?.(trace.code);
    }
    onAnswer?.(endpoint, response.status);
    if (isLogged) logAnswer(endpoint, call.request, response, trace, monotonicMs() - startedAt);
    return response;
  };

  /** The access log. It names the route, not the path, which may hold a token. */
  function logAnswer(endpoint: ErasedEndpoint, request: Request, response: Response, trace: Trace, ms: number): void {
    const { method, path } = endpoint;
    log.write("debug", "request.answered", {
      requestId: trace.id,
      clientRequestId: clientRequestId(request.headers),
      method,
      route: path,
      status: response.status,
      code: trace.code,
      ms: Math.round(ms * 10) / 10,
      requestBytes: Number(request.headers.get("content-length")) || 0,
      responseBytes: trace.bytes,
      tenantId: trace.tenantId,
      address: trace.address,
    });
  }

  async function answer(
    endpoint: ErasedEndpoint,
    { request, params, socketAddress }: IncomingCall,
    trace: Trace,
    isLogged: boolean,
  ): Promise<Reply> {
    const { headers } = request;
    const isAsked = endpoint.access !== "api_key" || isLogged;
    const address = isAsked ? clientAddress(socketAddress(), headers) : undefined;
    trace.address = address;
    const identity = authenticate(endpoint.access, request, address);
    let { tenant, session, apiKeyId } = identity instanceof Promise ? await identity : identity;
    if (session) checkView(session, endpoint.method, endpoint.showsSecret === true);
    trace.tenantId = tenant?.id ?? null;
    if (!isAsked && !hasSeenForwarded && headers.has("x-forwarded-for")) {
      hasSeenForwarded = true;
      onForwarded?.(socketAddress(), headers);
    }
    let caller = { address, tenant, session, apiKeyId } as Caller;
    if (endpoint.limit) await endpoint.limit(caller);
    const place = bodyRoom.enter(tenant?.id);
    try {
      const body = endpoint.body === undefined ? undefined : await takeBody(endpoint, request, place, caller);
      if (endpoint.method !== "GET") {
        await endOfTurn();
        refuseBrokenOff(request);
      }
      if (endpoint.body !== undefined && mayHaveEnded(endpoint.access)) {
        ({ tenant, session } = await authenticate(endpoint.access, request, address));
        caller = { ...caller, tenant, session } as Caller;
      }
      const query = endpoint.query && check(endpoint.query, queryOf(request.url), "query");
      const checked = {
        ...caller,
        params: endpoint.params && check(endpoint.params, params, "path"),
        query,
        body,
        headers,
        raw: request,
      };
      const reply = await endpoint.handle(checked as Parameters<typeof endpoint.handle>[0]);
      return endpoint.method === "GET" ? inChunks(reply, tenant?.id) : reply;
    } finally {
      place.leave();
    }
  }

  /**
   * A large response goes out as its reader takes it. But not one to a write, because a 503 says that the request had no
   * effect; nor one that is the same for everybody, which is held in memory only once.
   */
  function inChunks({ json, chunks, heldBytes, ...reply }: Reply, owner: string | undefined): Reply {
    const begun = (parts: Chunks, bytes?: number): Reply => ({
      ...reply,
      text: answers.begin(owner, parts, bytes),
      headers: { ...jsonType, ...reply.headers },
    });
    if (chunks) return begun(chunks, heldBytes);
    const whole = json === undefined ? reply.text : JSON.stringify(json);
    if (whole === undefined) return reply;
    const isLarge = owner !== undefined && typeof whole === "string" && whole.length > smallAnswerBytes;
    if (!isLarge) return { ...reply, text: whole };
    // From here on only the bytes are held, so that what is counted is what there is.
    const bytes = encoder.encode(whole);
    return begun(chunksOfBytes(bytes), bytes.length);
  }

  async function takeBody(endpoint: ErasedEndpoint, request: Request, place: Place, caller: Caller): Promise<unknown> {
    try {
      const bytes = await readBody(request, endpoint.maxBodyBytes ?? smallBodyBytes, place);
      checkContentType(request.headers, endpoint.body === "form" ? "form" : "json");
      return contentOf(endpoint, bytes);
    } catch (error) {
      if (error instanceof DomainError) endpoint.onUnread?.(caller, error);
      throw error;
    }
  }

  function contentOf({ body, bodyOptional }: ErasedEndpoint, bytes: Uint8Array): unknown {
    if (body === "bytes" || body === undefined) return bytes;
    if (body === "form") return parseForm(bytes);
    return check(body, bytes.length === 0 && bodyOptional ? {} : parseJson(bytes), "body");
  }
}

/**
 * Whether the credential is judged again once the body has come, which a client can delay: else whoever holds back the last byte
 * keeps a stolen session past a change of the password, and a suspended account at work. An API key is judged with the write.
 */
const mayHaveEnded = (access: Access) => access === "session" || access === "operator";

/**
 * Refuses a request that was broken off by what came with it, before it does anything. The listener takes trailers, an empty
 * line or an extra byte after a body for another request; it answers that with an empty 400 and closes the connection, which
 * is all that the client sees (RFC 9112, section 7.1.2, would let it discard trailers). It has read them by the end of its
 * turn of the loop.
 * @throws invalid `request_abandoned`, which no client ever sees
 */
function refuseBrokenOff(request: Request): void {
  if (request.signal.aborted) throw requestAbandoned();
}

let turnEnds: Promise<void> | null = null;

/**
 * Immediates run once everything that had arrived has been read, so a single one serves all requests of a turn, even those
 * that ask from within another immediate: they were read before it. One immediate per request took 0.8 µs more.
 */
function endOfTurn(): Promise<void> {
  turnEnds ??= new Promise((resolve) => {
    setImmediate(() => {
      turnEnds = null;
      resolve();
    });
  });
  return turnEnds;
}

/**
 * The query as an object without a prototype, since a parameter may be called `__proto__`. Of equal names the last one
 * counts.
 */
function queryOf(url: string): Record<string, string> {
  const at = url.indexOf("?");
  const query: Record<string, string> = Object.create(null);
  if (at >= 0) for (const [name, value] of new URLSearchParams(url.slice(at + 1))) query[name] = value;
  return query;
}

/** Only for the level debug, since JSON is serialised twice for it. */
function bytesOf({ json, text = "" }: Reply): number | null {
  const body = json === undefined ? text : JSON.stringify(json);
  return typeof body === "string" ? Buffer.byteLength(body) : null;
}

const encoder = new TextEncoder();

const jsonType = { "Content-Type": "application/json" };

/** A Response copies these. Creating its headers from an object each time took 0.8 µs more. */
const plainHeaders = new Headers(securityHeaders);
const jsonHeaders = new Headers({ ...securityHeaders, ...jsonType });

function toResponse({ status, json, text, headers = {} }: Reply, requestId: string): Response {
  const body = json === undefined ? (text ?? null) : JSON.stringify(json);
  const isJson = json !== undefined || (typeof text === "string" && !headers["Content-Type"]);
  const own = isJson && body !== null ? jsonHeaders : plainHeaders;
  own.set("Request-Id", requestId);
  const response = new Response(body, { status, headers: own });
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
  return response;
}
