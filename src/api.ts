import { staticPlugin } from "@elysiajs/static";
import type { BunRequest } from "bun";
import { Elysia } from "elysia";
import { DomainError, notFound, shuttingDown } from "./domain/errors.ts";
import type { AddressSource } from "./http/accept-limit.ts";
import type { createCrossSiteGuard } from "./http/cross-site-guard.ts";
import { assetHeaders } from "./http/dashboard-routes.ts";
import { documentPath } from "./http/document/path.ts";
import type { ErasedEndpoint } from "./http/endpoint.ts";
import { errorResponse, securityHeaders } from "./http/errors.ts";
import { refuseForeign } from "./http/local-guard.ts";
import { refuseMalformed } from "./http/malformed.ts";
import type { IncomingCall } from "./http/respond.ts";
import { stackOf } from "./lib/error-message.ts";
import type { Log } from "./lib/log.ts";

/** Higher than any limit of our own reader, because the listener's 413 has no body. */
export const listenerBodyLimit = 8 * 2 ** 20;

/**
 * A quiet connection is cut after this many seconds. Slow counts as quiet too, or a thousand clients at a byte a second
 * would hold a thousand connections forever: with Bun 1.4.5 a body must make about 16 KB in this time, and a head be
 * complete within 12 s.
 */
export const idleTimeoutSeconds = 30;

/**
 * Runtime routes for every path that is not ours. A path that goes through them has its segments as they were sent, which
 * is how `refuseMalformed` sees them; deeper ones are unknown in any case.
 */
const catchAll = Array.from({ length: 8 }, (_, depth) => "/:a/:b/:c/:d/:e/:f/:g/:h".slice(0, 3 * (depth + 1)));

export interface ApiOptions {
  endpoints: readonly ErasedEndpoint[];
  respond(endpoint: ErasedEndpoint, call: IncomingCall): Promise<Response>;
  /**
   * Prefixes of paths that take nothing from outside. Whatever is or is not below them, every request that no endpoint
   * takes gets the same answer, so it learns nothing about methods either.
   */
  sealedPaths: readonly string[];
  /** For people who come to a path that does not exist; programs get an error. */
  unknownPage: (() => Response) | null;
  localMode: boolean;
  refuseCrossSite: ReturnType<typeof createCrossSiteGuard>;
  log: Log;
  /** Base address of the server as seen from outside; for the document. */
  publicUrl(): string;
  /** On every answer; see `transportHeadersOf`. */
  transportHeaders?: Readonly<Record<string, string>>;
  /** Payments are on: the document mentions them. */
  isSelling: boolean;
  /** The server is about to stop: new requests are turned away. */
  isDraining(): boolean;
  /** Another listener takes new connections: each answer is the last one on its connection. */
  isMoving(): boolean;
  /** Called for every request, before anything else is looked at. */
  noteRequest(request: Request, server: AddressSource | null): void;
  /** The client's address for a request that another of our listeners took; null: there is none. */
  addressOf: ((request: Request) => string | undefined) | null;
  /** @default idleTimeoutSeconds */
  idleTimeout?: number;
  /** For metrics: the code of every answer that no endpoint gives. */
  onRefusal?(code: string): void;
}

/** The whole HTTP surface: every endpoint of every feature, one way of reporting errors, one document. */
export function createApi(options: ApiOptions) {
  const {
    endpoints,
    respond,
    localMode,
    refuseCrossSite,
    log,
    isDraining,
    isMoving,
    idleTimeout = idleTimeoutSeconds,
    isSelling,
  } = options;
  const { noteRequest, addressOf, sealedPaths, unknownPage, publicUrl, onRefusal } = options;
  const transportHeaders = Object.entries(options.transportHeaders ?? {});
  /**
   * What HEAD gets. The framework would read a body to its end to tell its length, and a stream has none; the runtime, which
   * gets the whole response instead, sends its head and cancels the body.
   */
  const heads = new WeakMap<Request, Response>();
  const api = new Elysia({
    serve: {
      maxRequestBodySize: listenerBodyLimit,
      idleTimeout,
      routes: {
        ...Object.fromEntries(catchAll.map((path) => [path, (request: Request) => api.fetch(request)])),
        ...runtimeRoutes(),
      },
      // Without this, the runtime shows the error and its source to whoever provokes one.
      error: failed,
    },
    normalize: false,
  });

  const secretPaths = createMethodTable(endpoints.filter(({ fromSecretPage }) => fromSecretPage));
  const isSecretPath = (path: string) => secretPaths(path).length > 0;
  api.wrap((route) => async (request: Request) => {
    const response = await route(request);
    return heads.get(request) ?? response;
  });
  api.onRequest(({ request, server }) => turnBack(request, server));

  const methodsOf = createMethodTable([...endpoints, { method: "GET", path: documentPath }]);
  api.onError(({ code, error, request }) => {
    if (code !== "NOT_FOUND") return failed(error);
    const path = new URL(request.url).pathname;
    const allow = sealedPaths.some((sealed) => path.startsWith(sealed)) ? [] : methodsOf(path);
    if (allow.length > 0) return refuse(methodNotAllowed(request.method, allow));
    const refusal = refuse(unknownPath());
    return unknownPage !== null && wantsPage(request) ? withTransport(unknownPage()) : refusal;
  });

  for (const endpoint of endpoints) {
    api.route(
      endpoint.method,
      endpoint.path,
      async ({ request, params, server }) => {
        const response = await answer(endpoint, request, asDecodedByRuntime(params), server);
        if (request.method !== "HEAD") return response;
        heads.set(request, response);
        return new Response(null);
      },
      { config: {}, parse: "none" },
    );
  }
  let document: Promise<string> | undefined;
  api.get(documentPath, async () => {
    // Loaded on demand: it would slow down every start, and few servers are ever asked for the document.
    document ??= import("./http/document/openapi.ts").then(({ writeDocument }) =>
      writeDocument(endpoints, publicUrl(), isSelling),
    );
    const headers = { ...securityHeaders, "Content-Type": "application/json" };
    return withTransport(new Response(await document, { headers }));
  });
  return api;

  /**
   * The endpoints a second time, as the runtime's own routes: the framework's context and hooks took 1.1 µs of each
   * request. The framework routes anything spelled another way (a trailing slash), what came to another listener, and
   * everything that is not an endpoint.
   */
  function runtimeRoutes() {
    type Handle = (request: BunRequest, server: Bun.Server<unknown>) => Response | Promise<Response>;
    const routes: Record<string, Record<string, Handle>> = {};
    for (const endpoint of endpoints) {
      routes[endpoint.path] = {
        ...routes[endpoint.path],
        [endpoint.method]: (request, server) =>
          turnBack(request, server) ?? answer(endpoint, request, request.params, server),
      };
    }
    return routes;
  }

  /** The framework has no object when a path has no parameters, and null for one that is not UTF-8; its types deny both. */
  function asDecodedByRuntime(params: Record<string, string | null> = {}): Record<string, string> {
    return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, value ?? "\ufffd"]));
  }

  /** The first step for every request: it is counted, and may be refused, on any path, before anything else is looked at. */
  function turnBack(request: Request, server: AddressSource | null): Response | undefined {
    noteRequest(request, server);
    if (isDraining()) return withTransport(turnAway());
    const refusal =
      refuseMalformed(request) ??
      (localMode ? refuseForeign(request.headers) : null) ??
      refuseCrossSite(request, isSecretPath);
    return refusal ? refuse(refusal) : undefined;
  }

  function answer(
    endpoint: ErasedEndpoint,
    request: Request,
    params: Record<string, string>,
    server: Bun.Server<unknown> | null,
  ): Promise<Response> {
    if (endpoint.idleTimeoutSeconds !== undefined) server?.timeout(request, endpoint.idleTimeoutSeconds);
    const socketAddress = () => addressOf?.(request) ?? server?.requestIP(request)?.address ?? "";
    return respond(endpoint, { request, params, socketAddress }).then(withTransport);
  }

  /** Anything that neither an endpoint nor `respond` has caught is a bug. */
  function failed(error: unknown): Response {
    log.write("error", "request.failed", {
      error: stackOf(error),
    });
    return withTransport(errorResponse(error));
  }

  function refuse(error: DomainError): Response {
    onRefusal?.(error.code);
    return withTransport(errorResponse(error));
  }

  function withTransport(response: Response): Response {
    for (const [name, value] of transportHeaders) response.headers.set(name, value);
    if (isMoving()) response.headers.set("Connection", "close");
    return response;
  }
}

export type Api = ReturnType<typeof createApi>;

/** The dashboard's files; its page is an endpoint, because files go out without its headers. */
export function dashboardAssets(folder: string, transportHeaders: Readonly<Record<string, string>>) {
  return staticPlugin({
    assets: folder,
    prefix: "/assets",
    alwaysStatic: true,
    headers: { ...assetHeaders, ...transportHeaders },
    // The plugin emits invalid ETags (RFC 9110, section 8.8.3), and files that never change need no revalidation.
    etag: false,
    silent: true,
  });
}

function turnAway(): Response {
  const response = errorResponse(shuttingDown(2));
  response.headers.set("Connection", "close");
  return response;
}

/** The methods that a path has, for `Allow` (RFC 9110, section 10.2.1); none for an unknown path. */
function createMethodTable(endpoints: readonly Pick<ErasedEndpoint, "method" | "path">[]): (path: string) => string[] {
  const table = endpoints.map(({ method, path }) => ({
    method,
    // The same way as the router matches a path: a dot is literal, and one trailing slash is ignored.
    pattern: new RegExp(`^${path.replaceAll(".", "\\.").replace(/:[^/]+/g, "[^/]+")}/?$`),
  }));
  return (path) => [...new Set(table.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method))];
}

/** Browsers ask for HTML when somebody navigates; no program that calls the API does. */
const wantsPage = ({ method, headers }: Request) =>
  method === "GET" && /\btext\/html\b/.test(headers.get("accept") ?? "");

const unknownPath = () => notFound("This path does not exist; GET /docs lists those that do.", "unknown_path");

const methodNotAllowed = (method: string, allow: string[]) =>
  new DomainError({
    kind: "method_not_allowed",
    code: "method_not_allowed",
    message: `${method} is not allowed here; use ${allow.join(" or ")}.`,
    allow,
  });
