import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import swaggerStyles from "swagger-ui-dist/swagger-ui.css" with { type: "file" };
import swaggerBundle from "swagger-ui-dist/swagger-ui-bundle.js" with { type: "file" };
import * as v from "valibot";
import { notFound } from "../domain/errors.ts";
import initScript from "./docs-init.js" with { type: "file" };
import pageStyles from "./docs-page.css" with { type: "file" };
import { type ErasedEndpoint, endpoint, type Reply } from "./endpoint.ts";
import { pageHeaders } from "./page-headers.ts";

const compress = promisify(gzip);

const javascript = "text/javascript; charset=utf-8";

/** The files of the page, embedded in the executable. Nothing is loaded from another host. */
const files = new Map([
  ["swagger-ui-bundle.js", { path: swaggerBundle, type: javascript }],
  ["swagger-ui.css", { path: swaggerStyles, type: "text/css; charset=utf-8" }],
  ["page.css", { path: pageStyles, type: "text/css; charset=utf-8" }],
  ["init.js", { path: initScript, type: javascript }],
]);

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Postrider API</title>
<link rel="icon" href="data:,">
<meta name="color-scheme" content="light dark">
<link rel="stylesheet" href="/docs/assets/swagger-ui.css">
<link rel="stylesheet" href="/docs/assets/page.css">
</head>
<body>
<nav class="back" aria-label="Dashboard"><a href="/">Back to the dashboard</a></nav>
<noscript><p class="needs-script">This page needs JavaScript. It shows the OpenAPI document at <a href="/openapi.json">/openapi.json</a>, which any tool for OpenAPI reads.</p></noscript>
<div id="swagger-ui"></div>
<script src="/docs/assets/swagger-ui-bundle.js"></script>
<script src="/docs/assets/init.js"></script>
</body>
</html>
`;

/** Swagger UI sets styles through the DOM, which `style-src 'self'` allows, and keeps its icons in `data:` URLs. */
const headers = pageHeaders({
  "script-src": "'self'",
  "style-src": "'self'",
  "img-src": "'self' data:",
  "connect-src": "'self'",
});

const tag = "Pages";

/** The API as a page to read and try out: Swagger UI over `GET /openapi.json`. */
export function docsRoutes(): ErasedEndpoint[] {
  const assets = new Map([...files].map(([name, file]) => [name, createAsset(file)]));

  return [
    endpoint(
      {
        method: "GET",
        path: "/docs",
        tag,
        summary: "Read and try the API",
        access: "none",
        responses: { 200: { description: "The page.", contentType: "text/html" } },
      },
      () => ({ status: 200, text: page, headers }),
    ),

    endpoint(
      {
        method: "GET",
        path: "/docs/assets/:file",
        tag,
        summary: "Get a file of the documentation page",
        access: "none",
        params: v.object({ file: v.string() }),
        responses: {
          200: { description: "The file.", contentType: "application/octet-stream" },
          304: { description: "The browser has it already." },
          404: { description: "There is no such file." },
        },
      },
      ({ params, headers }) => {
        const asset = assets.get(params.file);
        if (!asset)
          throw notFound("This file does not exist; the page at /docs links to those that do.", "unknown_path");
        return asset.answer(headers);
      },
    ),
  ];
}

/** One embedded file. It is hashed and compressed on first use, off the loop: the bundle has 1.7 MB. */
function createAsset({ path, type }: { path: string; type: string }) {
  let prepared: Promise<{ hash: string; gzipped: Uint8Array<ArrayBuffer> }> | undefined;

  return {
    async answer(headers: Headers): Promise<Reply> {
      prepared ??= prepare();
      const { hash, gzipped } = await prepared;
      const isGzip = acceptsGzip(headers.get("accept-encoding"));
      // Two encodings of one file need two strong tags (RFC 9110, section 8.8.3).
      const tag = isGzip ? `"${hash}-gzip"` : `"${hash}"`;
      const common = { "Cache-Control": "no-cache", ETag: tag, Vary: "Accept-Encoding" };
      if (namesTag(headers.get("if-none-match"), tag)) return { status: 304, headers: common };
      return {
        status: 200,
        text: isGzip ? new Blob([gzipped]).stream() : Bun.file(path).stream(),
        headers: { ...common, "Content-Type": type, ...(isGzip && { "Content-Encoding": "gzip" }) },
      };
    },
  };

  async function prepare() {
    const bytes = await Bun.file(path).bytes();
    const hash = createHash("sha256").update(bytes).digest("base64url").slice(0, 22);
    return { hash, gzipped: new Uint8Array(await compress(bytes, { level: 9 })) };
  }
}

/** RFC 9110, section 12.5.3; an encoding of weight 0 is refused. */
function acceptsGzip(header: string | null): boolean {
  const weights = new Map((header ?? "").toLowerCase().split(",").map(weightOf));
  return (weights.get("gzip") ?? weights.get("*") ?? 0) > 0;
}

/** `gzip;q=0.5` → `["gzip", 0.5]` */
function weightOf(item: string): [coding: string, weight: number] {
  const [coding = "", ...parameters] = item.split(";").map((part) => part.trim());
  const q = parameters.find((parameter) => parameter.startsWith("q="));
  return [coding, q === undefined ? 1 : Number(q.slice(2))];
}

/** RFC 9110, section 13.1.2: tags are compared weakly. */
const namesTag = (header: string | null, tag: string) =>
  (header ?? "").split(",").some((item) => item.trim() === "*" || item.trim().replace(/^W\//, "") === tag);
