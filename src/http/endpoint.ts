import type * as v from "valibot";
import type { DomainError } from "../domain/errors.ts";
import type { Tenant } from "../domain/tenant.ts";
import type { Chunks } from "./answers.ts";
import type { SessionClaims } from "./session.ts";

/** A valibot schema of a body, a query or path parameters. */
export type Schema = v.GenericSchema<unknown, unknown>;

/** `bytes`: as received. `form`: what a plain HTML form posts, which lets a page work without any script. */
export type RawBody = "bytes" | "form";

type Output<S> = S extends Schema ? v.InferOutput<S> : undefined;

/** Who may call (specification, "Authentication"). `metrics`: the metrics collector, and the operator. */
export type Access = "none" | "session" | "api_key" | "operator" | "metrics";

export interface ResponseDescription {
  description: string;
  /** Absent: no body. */
  schema?: Schema;
  example?: unknown;
  /** Headers that the response carries, for the document. */
  headers?: Readonly<Record<string, string>>;
  /** Absent: application/json. */
  contentType?: string;
}

/**
 * One endpoint: what it takes, who may call it and what it returns. The same description checks requests, types the handler
 * and becomes the OpenAPI document.
 */
export interface EndpointDescription<
  Access_ extends Access,
  Params extends Schema | undefined,
  Query extends Schema | undefined,
  Body extends Schema | RawBody | undefined,
> {
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  /** Group in the document. */
  tag: string;
  summary: string;
  description?: string;
  access: Access_;
  /** The response holds something that the operator must not see while viewing an account. */
  showsSecret?: true;
  params?: Params;
  query?: Query;
  /** With `bytes` and `form` the handler reads the body itself; the schema for the document is then `bodyDocument`. */
  body?: Body;
  bodyDocument?: Schema;
  bodyExample?: unknown;
  /** An absent body counts as `{}`. */
  bodyOptional?: boolean;
  /** Largest body in bytes; `smallBodyBytes` when absent. */
  maxBodyBytes?: number;
  /** A connection that is silent for longer is cut. @default `idleTimeoutSeconds` of the listener */
  idleTimeoutSeconds?: number;
  /**
   * One of our pages with a secret address posts here: it keeps that address out of `Referer`, and a browser then sends no
   * origin either. See `createCrossSiteGuard`.
   */
  fromSecretPage?: boolean;
  /** Rate-limits a caller before the body is read; throws a `rate_limited` DomainError. */
  limit?: (caller: Caller<Access_>) => Promise<void>;
  /** Called when a request is refused before it reaches the handler, once its caller is known. */
  onUnread?: (caller: Caller<Access_>, error: DomainError) => void;
  /** It concerns what is sold: the document of a server that sells nothing leaves it out. */
  sells?: boolean;
  responses: Readonly<Record<number, ResponseDescription>>;
}

/** Limit for the bodies of management calls; only ingestion takes more. */
export const smallBodyBytes = 64 * 1024;

/**
 * Limit for the bodies of callers who are not authenticated yet and may ask again and again: logins and password resets. The
 * longest ids and passwords fit in, even with every character escaped. Parsing 64 KiB of nothing but keys takes a
 * millisecond, and 32 connections that sent such bodies made everybody wait for 60 ms.
 */
export const credentialBodyBytes = 16 * 1024;

export interface Caller<Access_ extends Access = Access> {
  /**
   * The client's address; behind trusted proxies, the one they name. A caller with an API key is identified by the key:
   * asking the system where each event comes from took 1.5 µs.
   */
  readonly address: Access_ extends "api_key" ? undefined : string;
  readonly tenant: Access_ extends "session" | "api_key" ? Tenant : undefined;
  readonly session: Access_ extends "session" ? SessionClaims : undefined;
  readonly apiKeyId: Access_ extends "api_key" ? string : undefined;
}

export interface CheckedRequest<Access_ extends Access, Params, Query, Body> extends Caller<Access_> {
  readonly params: Output<Params>;
  readonly query: Output<Query>;
  readonly body: Body extends "bytes" ? Uint8Array : Body extends "form" ? URLSearchParams : Output<Body>;
  readonly headers: Headers;
  /** The original request; its body has been read. */
  readonly raw: Request;
}

export interface Reply {
  status: number;
  /** Sent as JSON. */
  json?: unknown;
  text?: string | ReadableStream<Uint8Array>;
  /** JSON that is produced as the reader takes it. */
  chunks?: Chunks;
  /** How many bytes of `chunks` are in memory before the first one is produced. */
  heldBytes?: number;
  headers?: Record<string, string>;
}

export type ErasedEndpoint = EndpointDescription<
  Access,
  Schema | undefined,
  Schema | undefined,
  Schema | RawBody | undefined
> & {
  handle(request: CheckedRequest<Access, unknown, unknown, unknown>): Promise<Reply> | Reply;
};

/** Describes an endpoint and handles its requests. */
export function endpoint<
  Access_ extends Access,
  Params extends Schema | undefined = undefined,
  Query extends Schema | undefined = undefined,
  Body extends Schema | RawBody | undefined = undefined,
>(
  description: EndpointDescription<Access_, Params, Query, Body>,
  handle: (request: CheckedRequest<Access_, Params, Query, Body>) => Promise<Reply> | Reply,
): ErasedEndpoint {
  return { ...description, handle } as unknown as ErasedEndpoint;
}

export const ok = (json: unknown): Reply => ({ status: 200, json });
export const created = (json: unknown): Reply => ({ status: 201, json });
export const accepted = (json?: unknown, headers: Record<string, string> = {}): Reply => ({
  status: 202,
  json,
  headers,
});
export const noContent = (): Reply => ({ status: 204 });
