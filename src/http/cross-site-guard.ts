import { DomainError } from "../domain/errors.ts";
import { isLoopbackHost } from "../lib/cidr.ts";

/** These methods change nothing (RFC 9110, section 9.2.1). */
const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);
export const isSafe = (method: string): boolean => safeMethods.has(method);

export interface OwnOrigins {
  /** Base address under which the server is known outside. */
  publicUrl(): string;
  /** The port it listens on. */
  port(): number | undefined;
}

/**
 * Refuses requests that somebody else's page has sent through a visitor's browser: such a page could create accounts on a
 * laptop, or use up the limits of the visitor's address. Only browsers write these two fields, and no page can omit or forge
 * them (Fetch, section 3.2; Fetch Metadata, section 2.3), so a request without them does not come from a page. A neighbour
 * (`same-site`: another port of this machine, another name of the domain) is somebody else too, and is recognised by its
 * `Origin`.
 */
export function createCrossSiteGuard({ publicUrl, port }: OwnOrigins) {
  /** @param isSecretPath whether a page with a secret address posts to this path (`fromSecretPage`) */
  return function refuseCrossSite(
    { method, headers, url }: Request,
    isSecretPath: (path: string) => boolean,
  ): DomainError | null {
    if (isSafe(method)) return null;
    const origin = headers.get("origin");
    const site = headers.get("sec-fetch-site");
    if (origin === null && site === null) return null;
    if (site === "cross-site") return crossSite();
    const isOurs = site === null || site === "same-origin" || site === "none";
    if (origin === null) return isOurs ? null : crossSite();
    // A page with a secret address sends no origin, and over plain http no `Sec-Fetch-Site` says more. Anyone who knows the
    // address may post.
    if (origin === "null") return (site === null ? isSecretPath(new URL(url).pathname) : isOurs) ? null : crossSite();
    return isOwn(origin, headers.get("host")) ? null : crossSite();
  };

  /**
   * On this machine a page has many names, and behind a forwarded port its port differs from ours: accept the one it asked
   * for.
   */
  function isOwn(origin: string, host: string | null): boolean {
    if (!URL.canParse(origin)) return false;
    const from = new URL(origin);
    if (from.origin === new URL(publicUrl()).origin) return true;
    return isLoopbackHost(from.hostname) && (from.port === String(port()) || from.host === host);
  }
}

const crossSite = () =>
  new DomainError({
    kind: "forbidden",
    code: "cross_site",
    message:
      "Pages of other sites may not do this; open the dashboard at the server's public address (POSTRIDER_PUBLIC_URL), or call the API without a browser.",
  });
