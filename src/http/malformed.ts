import { type DomainError, invalid } from "../domain/errors.ts";
import { remember } from "../lib/remember.ts";

/**
 * A name or an address, and a port (RFC 3986, section 3.2, without the parts that are not a host: a user, a path, blanks, a
 * list). A name longer than 255 characters is not a DNS name.
 */
const hostPattern = /^(?:\[[0-9a-f:.]+\]|[a-z0-9._~-]+)(?::(\d{0,5}))?$/i;
const longestHost = 255 + ":65535".length;

/** The text of a request's path segments, as the router found them. */
type Segments = Readonly<Record<string, string>>;

/**
 * Says what is wrong with a request before anything reads it. The runtime has no `Request.url` when the Host is not a valid
 * one, or has one that no parser takes; and it rewrites a backslash in the target to a slash, so a proxy in front and the
 * router here would see two different paths (RFC 9112, section 3.2).
 */
export function refuseMalformed(request: Request): DomainError | null {
  const host = request.headers.get("host");
  if (host === null || !isHost(host)) {
    return invalid("Host must be a single name or address, optionally with a port.", "invalid_host");
  }
  if (request.method === "CONNECT") {
    return invalid("CONNECT is not supported; this server is not a proxy.", "invalid_target");
  }
  const { params = {} } = request as Request & { params?: Segments };
  if (request.url.includes("#") || hasBackslash(request.url, params)) {
    return invalid(
      "The request target must not contain a backslash or #; encode them as %5C and %23.",
      "invalid_target",
    );
  }
  return null;
}

/** Few names lead here, so this many are enough. */
const rememberedHosts = 256;

const isHost = remember((host): boolean => {
  const parts = host.length > longestHost ? null : hostPattern.exec(host);
  // The pattern lets through some names that are not valid: 256.256.256.256, [1:2], xn--a.
  return parts !== null && Number(parts[1] ?? 0) <= 65_535 && URL.canParse(`http://${host}`);
}, rememberedHosts);

/** In the path, only the segments still contain the backslash, alongside any that were escaped. */
function hasBackslash(url: string, segments: Segments): boolean {
  if (url.includes("\\")) return true;
  let found = 0;
  for (const segment of Object.values(segments)) if (segment.includes("\\")) found += count(segment, /\\/g);
  return found > 0 && found > count(pathOf(url), /%5c/gi);
}

const count = (text: string, pattern: RegExp) => text.match(pattern)?.length ?? 0;

const pathOf = (url: string) => url.split("?", 1)[0] ?? "";
