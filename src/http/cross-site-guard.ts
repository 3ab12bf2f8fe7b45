import { DomainError } from "../domain/errors.ts";
import { isLoopbackHost } from "../lib/cidr.ts";

/** They change nothing (RFC 9110, section 9.2.1). */
const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);
export const isSafe = (method: string): boolean => safeMethods.has(method);

export interface OwnOrigins {
  /** Base address of the server, as it is known outside. */
  publicUrl(): string;
  /** Port that it listens on. */
  port(): number | undefined;
}

/**
 * Refuses what a page of somebody else has sent through a visitor's browser: it could make accounts on a laptop, or use up
 * the limits of the visitor's address. Only browsers write these two fields, and no page can leave them out or forge them
 * (Fetch, section 3.2; Fetch Metadata, section 2.3), so what comes without them is no page. A neighbour (`same-site`:
 * another port of this machine, another name of the domain) is somebody else, and is known by its `Origin`.
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
    // From a secret address, and on plain http no `Sec-Fetch-Site` says more. Whoever knows the address may post.
    if (origin === "null") return (site === null ? isSecretPath(new URL(url).pathname) : isOurs) ? null : crossSite();
    return isOwn(origin, headers.get("host")) ? null : crossSite();
  };

  /** On this machine a page has many names, and behind a forwarded port another port than ours: the one it asked for. */
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
