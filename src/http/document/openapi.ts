import { openapi } from "@elysiajs/openapi";
import { Elysia } from "elysia";
import { version } from "../../version.ts";
import type { ErasedEndpoint } from "../endpoint.ts";
import { describeEndpoint } from "./operation.ts";
import { parametersOf } from "./parameters.ts";
import { documentPath } from "./path.ts";
import { type SharedSchemas, shareSchemas } from "./shared-schemas.ts";
import { withoutSales } from "./unsold.ts";

/** What the document says besides its operations. A tag that an endpoint uses and this list lacks fails a test. */
const documentation = {
  info: {
    title: "Postrider",
    version,
    license: { name: "MIT", identifier: "MIT" },
    description: [
      "A multi-tenant event relay with stored history: it accepts events, stores them and delivers each one to every registered webhook, signed and with retries.",
      "Every error body is `{message, code}`: a sentence for people and a stable code for programs. Times are ISO 8601 in UTC with milliseconds. New values of `state` and `status` and new response fields may be added; ignore those you do not know.",
      "An unknown path returns 404 with the code `unknown_path`; a method that the path does not support returns 405 with `Allow`. A server in local mode returns 403 with the code `local_mode` for every request that does not come from its own machine.",
      "An invalid `Host` returns 400 with the code `invalid_host`; `CONNECT` and a raw backslash or `#` in the request target return 400 with the code `invalid_target`. A request other than GET, HEAD or OPTIONS that a browser sends from another origin (`Origin`, `Sec-Fetch-Site`) returns 403 with the code `cross_site`.",
      "A session with which the operator views an account reads it and no more: every other request, and one for the API keys or the signing secret, returns 403 with the code `read_only_session`.",
      "A `maxLength` counts UTF-16 units, as JavaScript and Java do: an emoji is two. Among the eight characters of a password it is one.",
      'When a single field causes a 400, `Error-Field` names it as the message does (`webhooks[2].webhook_url`) and `Error-Rule` has the rule that follows (`must start with "https://"`), so that a form can show the rule under its own label.',
      "Every response of an endpoint carries `Request-Id`, which identifies the request in the operator's log; quote it when you report a problem. A client's own `X-Request-Id` is logged with it but not sent back.",
    ].join("\n\n"),
  },
  tags: [
    { name: "Accounts", description: "Create, read, change and delete a tenant." },
    { name: "Billing", description: "The card, usage this month and every charge." },
    { name: "Sessions", description: "Session tokens (JWT) for all management calls, and the account's password." },
    { name: "API keys", description: "The key that authorises ingestion." },
    { name: "Ingestion", description: "Where events come in. A 202 means that they are on disk." },
    { name: "Webhooks", description: "The https URLs to which events are delivered." },
    {
      name: "Inbox",
      description: "A built-in receiver for every account, to see deliveries without running one of your own.",
    },
    { name: "Events", description: "Stored events, their deliveries, attempts and statistics." },
    { name: "Replays", description: "Deliver stored events again, in the background." },
    { name: "Signatures", description: "What a receiver needs to prove that a delivery is genuine." },
    { name: "Stream", description: "The account's activity, in real time." },
    { name: "Operation", description: "Probes for orchestrators and monitoring." },
  ],
  components: {
    securitySchemes: {
      session: { type: "http", scheme: "bearer", bearerFormat: "JWT", description: "A session token from the login." },
      apiKey: { type: "http", scheme: "bearer", bearerFormat: "svc_sk_…", description: "The API key of the account." },
    },
    schemas: {
      Error: {
        type: "object",
        properties: {
          message: { type: "string", description: "A sentence that names the field, the rule and the remedy." },
          code: { type: "string", pattern: "^[a-z][a-z0-9_]*$", description: "A stable code to branch on." },
        },
        required: ["message", "code"],
      },
    },
  },
};

/**
 * The document as JSON, which @elysiajs/openapi makes from the `detail` of every route. It works on a copy of the interface
 * that answers nothing else, because describing all routes takes a tenth of a start, and few servers are ever asked. One
 * thing is corrected: the plugin replaces path parameters by bare strings and drops the query along with them, unless Elysia
 * itself checks them (it does not: `respond.ts` does).
 */
export async function writeDocument(
  all: readonly ErasedEndpoint[],
  publicUrl: string,
  isSelling: boolean,
): Promise<string> {
  const endpoints = isSelling ? all : all.filter(({ sells = false }) => !sells);
  const copy = new Elysia({ normalize: false });
  copy.use(
    openapi({
      provider: null,
      specPath: documentPath,
      openapiVersion: "3.1.0",
      // Otherwise every path with a dot counts as a file, including `jwks.json`.
      exclude: { staticFile: false },
      // Typed for 3.0, which the schemas of 3.1 do not fit.
      documentation: { ...documentation, tags: tagsOf(endpoints) } as object,
    }),
  );
  for (const endpoint of endpoints) {
    copy.route(endpoint.method, endpoint.path, () => null, {
      config: {},
      parse: "none",
      detail: describeEndpoint(endpoint),
    });
  }
  const answer = await copy.handle(new Request(`http://localhost${documentPath}`));
  const document = withSharedSchemas(withParameters((await answer.json()) as OpenApiDocument, endpoints));
  const described = { ...document, servers: serversOf(publicUrl) };
  return JSON.stringify(isSelling ? described : withoutSales(described));
}

const tagsOf = (endpoints: readonly ErasedEndpoint[]) =>
  documentation.tags.filter(({ name }) => endpoints.some(({ tag }) => tag === name));

/** The page at `/docs` uses the first: it may call only the address under which it was opened. */
const serversOf = (publicUrl: string) => [
  { url: "/", description: "The server that serves this document." },
  { url: publicUrl, description: "The public address of the server." },
];

interface OpenApiDocument {
  paths: Record<string, Record<string, Record<string, unknown>>>;
  components: { schemas: SharedSchemas };
}

function withSharedSchemas({ paths, components, ...rest }: OpenApiDocument): OpenApiDocument {
  const { value, schemas } = shareSchemas(paths);
  const byName = Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1)));
  return {
    ...rest,
    paths: value as OpenApiDocument["paths"],
    components: { ...components, schemas: { ...components.schemas, ...byName } },
  };
}

function withParameters(document: OpenApiDocument, endpoints: readonly ErasedEndpoint[]): OpenApiDocument {
  for (const endpoint of endpoints) {
    const operation = document.paths[templateOf(endpoint.path)]?.[endpoint.method.toLowerCase()];
    if (operation) operation.parameters = parametersOf(endpoint);
  }
  return document;
}

/** `/v1/events/:id` → `/v1/events/{id}` */
const templateOf = (path: string) => path.replace(/:([^/]+)/g, "{$1}");
