import { refusals } from "./refusals.ts";
import { noteServerTime } from "./server-time.ts";
import { endSession, token } from "./session.ts";

/** The field that made the server refuse a request, by its API name, and the rule it breaks: "must …". */
export interface BrokenRule {
  readonly field: string;
  readonly rule: string;
}

/** Why a request failed: in our words where we have some for its code, otherwise in the server's. */
export class ApiError extends Error {
  override readonly name = "ApiError";

  constructor(
    message: string,
    /** 0 when there was no answer. */
    readonly status: number,
    /** The stable code of the error body. */
    readonly code: string,
    readonly retryAfterSeconds: number | null,
    /** Null: no single field is to blame. */
    readonly broken: BrokenRule | null = null,
  ) {
    super(message);
  }
}

export interface Call {
  method?: "GET" | "POST" | "PUT" | "DELETE";
  /** Sent as JSON. */
  body?: unknown;
  /** JSON text that is sent as is. */
  text?: string;
  query?: Readonly<Record<string, string | number | boolean | undefined>>;
  signal?: AbortSignal | undefined;
  /** Sent instead of the session's token; null: none. */
  credential?: string | null;
  /** The tag of what is replaced, as it was read: if it has changed since, the server leaves it alone and answers 412. */
  ifMatch?: string | null;
  /** It goes on when the page is closed. */
  keepalive?: boolean;
}

/**
 * One request to the server that the page came from. The session ends when the server no longer accepts its token.
 * @throws ApiError, also when the server cannot be reached; the abort reason when `signal` was aborted
 */
export async function call<T>(path: string, options: Call = {}): Promise<T> {
  const { response } = await send(path, options);
  return response.status === 204 || response.headers.get("content-length") === "0"
    ? (undefined as T)
    : readJson(response, options);
}

/** Like `call`, to start a replay. @returns its id */
export async function callForReplay(kind: string, body: object): Promise<string> {
  const { response } = await send(`/v1/events/replays/${kind}`, { method: "POST", body });
  // An unread body keeps the connection busy.
  await response.arrayBuffer();
  const id = response.headers.get("location")?.split("/").at(-1);
  if (id === undefined) throw foreign();
  return id;
}

/** Like `call`, for one page of an array; also returns the number of entries on all pages. */
export async function callForPage<T>(path: string, options: Call): Promise<{ entries: T[]; total: number }> {
  const { response } = await send(path, options);
  return { entries: await readJson<T[]>(response, options), total: Number(response.headers.get("total-count")) };
}

/** Like `call`, for a list that may be replaced: also returns the tag of this edition of it. */
export async function callForTagged<T>(path: string, options: Call): Promise<{ value: T; tag: string | null }> {
  const { response } = await send(path, options);
  // A proxy that compresses makes it a weak one, which would never match again.
  const tag = response.headers.get("etag")?.replace(/^W\//, "") ?? null;
  return { value: await readJson(response, options), tag };
}

async function readJson<T>(response: Response, { signal }: Call): Promise<T> {
  try {
    return (await response.json()) as T;
  } catch (error) {
    throw signal?.aborted ? error : foreign();
  }
}

/** A proxy that wants a login answers everything with its own page, and connections break. */
const foreign = () => new ApiError("The answer is incomplete, or not this server's.", 0, "foreign", null);

async function send(
  path: string,
  { method = "GET", body, text, query, signal, credential, ifMatch = null, keepalive = false }: Call,
) {
  const content = text ?? (body === undefined ? undefined : JSON.stringify(body));
  // Not `value`: an effect that makes a call must not run again because the token changed.
  const bearer = credential === undefined ? token.peek() : credential;
  let response: Response;
  try {
    response = await fetch(path + toQuery(query), {
      method,
      keepalive,
      headers: {
        ...(bearer !== null && { Authorization: `Bearer ${bearer}` }),
        ...(content !== undefined && { "Content-Type": "application/json" }),
        ...(ifMatch !== null && { "If-Match": ifMatch }),
      },
      ...(content !== undefined && { body: content }),
      ...(signal && { signal }),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError("The server cannot be reached.", 0, "unreachable", null);
  }
  noteServerTime(response.headers.get("date"));
  if (!response.ok) throw await toError(response, credential === undefined ? bearer : null);
  return { response };
}

/** @param session the token of the session, if the request had it */
export async function toError(response: Response, session: string | null): Promise<ApiError> {
  const body: unknown = await response.json().catch(() => null);
  const { message, code } = isErrorBody(body)
    ? body
    : { message: `The server answered with status ${response.status}.`, code: "" };
  const { headers } = response;
  const retryAfter = Number(headers.get("retry-after") ?? Number.NaN);
  const [field, rule] = [headers.get("error-field"), headers.get("error-rule")];
  const broken = field === null || rule === null ? null : { field, rule };
  // A session too old to be renewed is still valid until its token expires; and a request that began before the password
  // was changed says nothing about the token that came with the change.
  const isRefused = response.status === 401 && session !== null && session === token.peek();
  if (isRefused && code !== "session_too_old") endSession("ended");
  const seconds = Number.isNaN(retryAfter) ? null : retryAfter;
  return new ApiError(refusals[code] ?? message, response.status, code, seconds, broken);
}

const isErrorBody = (body: unknown): body is { message: string; code: string } =>
  typeof body === "object" && body !== null && "message" in body && typeof body.message === "string" && "code" in body;

function toQuery(query: Call["query"]): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined);
  return given.length === 0
    ? ""
    : `?${new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)]))}`;
}
