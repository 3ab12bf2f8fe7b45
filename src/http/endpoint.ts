import type * as v from "valibot";
import type { DomainError } from "../domain/errors.ts";
import type { Tenant } from "../domain/tenant.ts";
import type { Chunks } from "./answers.ts";
import type { SessionClaims } from "./session.ts";

/** A valibot schema of a body, a query or path parameters. */
export type Schema = v.GenericSchema<unknown, unknown>;

/** `bytes`: as they came. `form`: what a plain HTML form posts, by which a page works without any script. */
export type RawBody = "bytes" | "form";

type Output<S> = S extends Schema ? v.InferOutput<S> : undefined;

/** Who may call (specification, "Authentication"). `metrics`: who reads them, and the operator. */
export type Access = "none" | "session" | "api_key" | "operator" | "metrics";

export interface ResponseDescription {
  description: string;
  /** Absent: no body. */
  schema?: Schema;
  example?: unknown;
  /** Headers that the answer carries, for the document. */
  headers?: Readonly<Record<string, string>>;
  /** Absent: application/json. */
  contentType?: string;
}

/**
 * One endpoint: what it takes, who may call it and what it answers. The same description checks requests, types the
 * handler and becomes the OpenAPI document.
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
  /** It answers with what the operator, who looks at an account, must not see. */
  showsSecret?: true;
  params?: Params;
  query?: Query;
  /** `bytes` and `form`: the handler reads them itself; the schema for the document is then `bodyDocument`. */
  body?: Body;
  bodyDocument?: Schema;
  bodyExample?: unknown;
  /** An absent body counts as `{}`. */
  bodyOptional?: boolean;
  /** Largest body in bytes; `smallBodyBytes` when absent. */
  maxBodyBytes?: number;
  /** A connection that is quiet for longer is cut. @default `idleTimeoutSeconds` of the listener */
  idleTimeoutSeconds?: number;
  /**
   * A page of ours whose address is a secret posts here: it keeps that out of `Referer`, and a browser then names no origin
   * either. See `createCrossSiteGuard`.
   */
  fromSecretPage?: boolean;
  /** Refuses a caller by rate before the body is read; throws a `rate_limited` DomainError. */
  limit?: (caller: Caller<Access_>) => Promise<void>;
  /** Told of a request that was refused before it came to the handler, once it is known whose it is. */
  onUnread?: (caller: Caller<Access_>, error: DomainError) => void;
  /** It is about what is sold: the document of a server that sells nothing leaves it out. */
  sells?: boolean;
  responses: Readonly<Record<number, ResponseDescription>>;
}

/** Bodies of management calls; only ingestion takes more. */
export const smallBodyBytes = 64 * 1024;

/**
 * Bodies of those who are nobody yet and may ask again and again: logins, and resets of passwords. The longest ids and passwords
 * fit in, every character escaped. To parse 64 KiB of nothing but keys takes a millisecond, and 32 connections that send them made
 * everybody wait for 60 ms.
 */
export const credentialBodyBytes = 16 * 1024;

export interface Caller<Access_ extends Access = Access> {
  /**
   * Address of the client, behind trusted proxies the one they name. Whoever has an API key is known by it: to ask the system
   * where each event comes from took 1.5 µs.
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
  /** The request as it came; its body has been read. */
  readonly raw: Request;
}

export interface Reply {
  status: number;
  /** Sent as JSON; a `string` or bytes go as they are with `contentType`. */
  json?: unknown;
  text?: string | ReadableStream<Uint8Array>;
  /** JSON that is made as its reader takes it. */
  chunks?: Chunks;
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
