/**
 * Why an attempt got no answer. All of them are retryable (decisions, section 8); the word is for the error reason, the
 * attempt log and the metrics.
 */
export type NoResponseCause =
  | "timeout" // no complete head within the time of an attempt
  | "dns" // the name has no address, or its name servers do not say
  | "refused" // nothing listens there
  | "unreachable" // no route, or this machine is out of sockets
  | "reset" // the connection ended before a complete head
  | "tls" // no trusted, encrypted connection
  | "protocol" // what came is not HTTP/1
  | "address_not_public" // the policy forbids an address
  | "aborted"; // by us

/** An error with its cause already known: what our own `lookup` answers with. */
export class LookupError extends Error {
  override readonly name = "LookupError";

  constructor(
    readonly noResponse: NoResponseCause,
    readonly detail: string | undefined,
  ) {
    super(detail ?? noResponse);
  }
}

export interface Failure {
  cause: NoResponseCause;
  /** A few words for the tenant; never an address, a port or a name. */
  detail: string | undefined;
}

/**
 * Names the cause of an error of `node:http` and `node:tls`. It goes by codes: messages of the run-time carry addresses
 * and names, and which address was refused or reached must not leak (hardening, section 1.2). `handshaking` says whether
 * the connection was still to be secured: a peer that hangs up has the same code before and after.
 */
export function readFailure(error: unknown, handshaking: boolean): Failure {
  if (error instanceof LookupError) return { cause: error.noResponse, detail: error.detail };
  const code = codeOf(error);
  if (code.startsWith("HPE_")) return { cause: "protocol", detail: details[code] };
  const cause = socketCauses[code] ?? (code in details || handshaking || tlsCode.test(code) ? "tls" : "reset");
  if (cause === "reset" && handshaking) return { cause: "tls", detail: "connection closed during the TLS handshake" };
  return { cause, detail: details[code] ?? (cause === "tls" ? "TLS handshake failed" : undefined) };
}

/** Of BoringSSL and of the run-time's own checks. */
const tlsCode = /^(?:ERR_SSL|ERR_TLS|ERR_OSSL|CERT_)/;

const socketCauses: Record<string, NoResponseCause | undefined> = {
  ECONNREFUSED: "refused",
  ECONNRESET: "reset",
  ECONNABORTED: "reset",
  EPIPE: "reset",
  ERR_SOCKET_CLOSED: "reset",
  ENETUNREACH: "unreachable",
  EHOSTUNREACH: "unreachable",
  ENETDOWN: "unreachable",
  EHOSTDOWN: "unreachable",
  EADDRNOTAVAIL: "unreachable",
  EINVAL: "unreachable",
  EACCES: "unreachable",
  EPERM: "unreachable",
  ETIMEDOUT: "unreachable",
  EMFILE: "unreachable",
  ENFILE: "unreachable",
  ENOBUFS: "unreachable",
};

const incompleteChain = "certificate chain is incomplete or its authority is unknown";

const details: Record<string, string | undefined> = {
  EMFILE: "this server has too many open connections",
  ENFILE: "this server has too many open connections",
  HPE_HEADER_OVERFLOW: "response headers are larger than 16 KiB",
  HPE_UNEXPECTED_CONTENT_LENGTH: "response has more than one Content-Length",
  CERT_HAS_EXPIRED: "certificate has expired",
  CERT_NOT_YET_VALID: "certificate is not valid yet",
  DEPTH_ZERO_SELF_SIGNED_CERT: "certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "certificate authority is not trusted",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: incompleteChain,
  UNABLE_TO_GET_ISSUER_CERT: incompleteChain,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: incompleteChain,
  ERR_TLS_CERT_ALTNAME_INVALID: "certificate is for another host name",
};

/** A failed race of several addresses is one `AggregateError`; its first error stands for all. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "";
  if ("code" in error && typeof error.code === "string") return error.code;
  return error instanceof AggregateError ? codeOf(error.errors[0]) : "";
}
