import type { Config } from "../config.ts";
import { isAddress, isLoopbackHost } from "../lib/cidr.ts";

/**
 * What a TLS 1.2 client may choose from: forward secrecy and authenticated encryption (Mozilla's "intermediate", RFC 9325,
 * section 4.2). By default Bun 1.4.5 also accepts AES in CBC mode and RSA key transport. The TLS 1.3 suites cannot be set and
 * are all of that kind; versions older than 1.2 are refused by default (`test/api/tls.test.ts` holds it to that).
 */
export const tlsSuites = [
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
].join(":");

/** Long enough to still cover a browser that comes by once a year. */
const hstsSeconds = 365 * 24 * 60 * 60;

type TransportSettings = Pick<Config, "publicUrl"> & { readonly tls: object | null };

/**
 * Tells browsers to come back only over https (RFC 6797), when this program itself terminates TLS: behind a proxy, that is up
 * to the proxy. Never for the names of this machine, where it would apply to every other port as well, and never for an IP
 * address, for which it has no meaning. Subdomains of the public name are unknown here, so they are not included.
 */
export function transportHeadersOf({ tls, publicUrl }: TransportSettings): Record<string, string> {
  if (tls === null || publicUrl === null) return {};
  const { protocol, hostname } = new URL(publicUrl);
  if (protocol !== "https:" || isLoopbackHost(hostname) || isAddress(hostname)) return {};
  return { "Strict-Transport-Security": `max-age=${hstsSeconds}` };
}
