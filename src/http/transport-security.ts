import type { Config } from "../config.ts";
import { isAddress, isLoopbackHost } from "../lib/cidr.ts";

/**
 * What a client of TLS 1.2 may choose from: forward secrecy and authenticated encryption (Mozilla's "intermediate", RFC 9325,
 * section 4.2). By itself Bun 1.4.5 takes AES in CBC mode and key transport by RSA as well. The suites of TLS 1.3 cannot be set
 * and are all of that kind; older versions than 1.2 it refuses by itself (`test/api/tls.test.ts` holds it to that).
 */
export const tlsSuites = [
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
].join(":");

/** Long enough that a browser which comes by once a year is still covered. */
const hstsSeconds = 365 * 24 * 60 * 60;

type TransportSettings = Pick<Config, "publicUrl"> & { readonly tls: object | null };

/**
 * Tells browsers to come back by https alone (RFC 6797), where this program itself ends TLS: behind a proxy that is the proxy's
 * to say. Never for the names of this machine, where it would hold for every other port as well, and never for an address,
 * for which it has no meaning. Of other names below the public one nothing is known here, so it is not said of them.
 */
export function transportHeadersOf({ tls, publicUrl }: TransportSettings): Record<string, string> {
  if (tls === null || publicUrl === null) return {};
  const { protocol, hostname } = new URL(publicUrl);
  if (protocol !== "https:" || isLoopbackHost(hostname) || isAddress(hostname)) return {};
  return { "Strict-Transport-Security": `max-age=${hstsSeconds}` };
}
