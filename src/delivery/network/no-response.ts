import type { NoResponseCause } from "../../domain/failure.ts";

/** An error whose cause is already known: what our own `lookup` fails with. */
export class LookupError extends Error {
  override readonly name = "LookupError";

  constructor(
    readonly noResponse: NoResponseCause,
    readonly detail: string | undefined,
  ) {
    super(detail ?? noResponse);
  }
}

interface Found {
  cause: NoResponseCause;
  /** A few words for the tenant; never an address, a port or a name. */
  detail: string | undefined;
}

/**
 * Finds the cause of a socket, TLS or parser error. It goes by codes: the runtime's messages contain addresses and names,
 * and which address was refused or reached must not leak (hazards, section 1.2). `handshaking` says whether TLS was still
 * being negotiated: a peer that hangs up gives the same code before and after.
 */
export function readFailure(error: unknown, handshaking: boolean): Found {
  if (error instanceof LookupError) return { cause: error.noResponse, detail: error.detail };
  const code = codeOf(error);
  if (code.startsWith("HPE_")) return { cause: "protocol_error", detail: details[code] };
  const cause =
    socketCauses[code] ?? (code in details || handshaking || tlsCode.test(code) ? "tls_failed" : "connection_reset");
  if (cause === "connection_reset" && handshaking)
    return { cause: "tls_failed", detail: "connection closed during the TLS handshake" };
  return { cause, detail: details[code] ?? (cause === "tls_failed" ? "TLS handshake failed" : undefined) };
}

/** Whether the certificate is not trusted: that does not pass with time. */
export const isDistrust = (error: unknown): boolean => codeOf(error) in certificateFaults;

/** Codes of BoringSSL and of the runtime's own checks. */
const tlsCode = /^(?:ERR_SSL|ERR_TLS|ERR_OSSL|CERT_)/;

const socketCauses: Record<string, NoResponseCause | undefined> = {
  ECONNREFUSED: "connection_refused",
  ECONNRESET: "connection_reset",
  ECONNABORTED: "connection_reset",
  EPIPE: "connection_reset",
  ERR_SOCKET_CLOSED: "connection_reset",
  ENETUNREACH: "host_unreachable",
  EHOSTUNREACH: "host_unreachable",
  ENETDOWN: "host_unreachable",
  EHOSTDOWN: "host_unreachable",
  EADDRNOTAVAIL: "host_unreachable",
  EINVAL: "host_unreachable",
  EACCES: "host_unreachable",
  EPERM: "host_unreachable",
  ETIMEDOUT: "host_unreachable",
  EMFILE: "host_unreachable",
  ENFILE: "host_unreachable",
  ENOBUFS: "host_unreachable",
};

const incompleteChain = "certificate chain is incomplete or its authority is unknown";

const certificateFaults: Record<string, string | undefined> = {
  CERT_HAS_EXPIRED: "certificate has expired",
  CERT_NOT_YET_VALID: "certificate is not valid yet",
  DEPTH_ZERO_SELF_SIGNED_CERT: "certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "certificate authority is not trusted",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: incompleteChain,
  UNABLE_TO_GET_ISSUER_CERT: incompleteChain,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: incompleteChain,
  ERR_TLS_CERT_ALTNAME_INVALID: "certificate is for another host name",
};

const details: Record<string, string | undefined> = {
  EMFILE: "this server has too many open connections",
  ENFILE: "this server has too many open connections",
  HPE_ANSWER_OVERFLOW: "response is larger than 512 KiB",
  HPE_HEADER_OVERFLOW: "response headers are larger than 16 KiB",
  HPE_UNEXPECTED_CONTENT_LENGTH: "response has more than one Content-Length",
  ...certificateFaults,
};

/** A failed race of several addresses is one `AggregateError`; its first error stands for all. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "";
  if ("code" in error && typeof error.code === "string") return error.code;
  return error instanceof AggregateError ? codeOf(error.errors[0]) : "";
}
