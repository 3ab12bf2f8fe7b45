import { unavailable } from "../domain/errors.ts";
import type { DashboardFiles } from "./dashboard-files.ts";
import { type ErasedEndpoint, endpoint } from "./endpoint.ts";
import { pageHeaders } from "./page-headers.ts";

/** The views of the dashboard (`web/app.tsx`). They are listed here so that every other path remains a 404. */
const views = [
  "/",
  "/sign-in",
  "/sign-up",
  "/new-password",
  "/welcome",
  "/events",
  "/events/:id",
  "/webhooks",
  "/webhooks/:id",
  "/replays",
  "/inbox",
  "/inbox/:token",
  "/keys",
  "/plan",
];

/** The screens of this page have no paths of their own: the paths below this one are the operator's interface. */
const operatorView = "/operator";

/** Hazards, section 5, "The dashboard". Trusted types: text never becomes markup, and the browser enforces it. */
const headers = {
  ...pageHeaders({
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "font-src": "'self'",
    "form-action": "'self'",
    "require-trusted-types-for": "'script'",
  }),
  "Cache-Control": "no-cache",
};

/** Sent with every file of the dashboard. The names change with the content, so a browser never needs to ask again. */
export const assetHeaders = {
  "Cache-Control": "public, max-age=31536000, immutable",
  "Content-Encoding": "gzip",
  "Cross-Origin-Resource-Policy": "same-origin",
  "X-Content-Type-Options": "nosniff",
};

/** One page for every view: the calls it makes decide which view it shows, and who may see what. */
export function dashboardRoutes(files: DashboardFiles | null): ErasedEndpoint[] {
  return [
    ...views.map((path) => pageRoute(path, "Open the dashboard", files?.page)),
    pageRoute(operatorView, "Open the operator's page", files?.operatorPage),
  ];
}

/** What a browser gets for an unknown path: the page, which says so and leads on. Null: no dashboard was built. */
export const unknownPage = (files: DashboardFiles | null): (() => Response) | null =>
  files && (() => new Response(files.page, { status: 404, headers: { ...headers, Vary: "Accept" } }));

const pageRoute = (path: string, summary: string, page: string | undefined): ErasedEndpoint =>
  endpoint(
    {
      method: "GET",
      path,
      tag: "Pages",
      summary,
      access: "none",
      responses: { 200: { description: "The page.", contentType: "text/html" } },
    },
    () => {
      if (page === undefined) {
        throw unavailable("The dashboard was not built. Try: npm start, or bun web/build.ts", "dashboard_missing", 60);
      }
      return { status: 200, text: page, headers };
    },
  );
