import { SQL } from "bun";
import { type DomainError, invalid, unavailable } from "../../domain/errors.ts";
import { isCertificateRefused } from "../../lib/certificate.ts";
import { codeOf } from "../../lib/error-message.ts";
import { storageDamaged } from "../unless-damaged.ts";

/**
 * What a failed call to PostgreSQL means. The question behind it is always whether something may have been written: only a
 * server that answered with an error of its own has said that nothing was.
 *
 *   passing   nothing was written, and a repetition may succeed: no connection was made, the server has no room for one, its
 *             certificate was refused, or it ended the statement
 *   full      as passing, and the server's disk is full
 *   exhausted as passing, and the server has no connection left
 *   conflict  as passing: two transactions were in each other's way, and the server chose this one
 *   standby   as passing, and the server is read-only: after a failover it is the wrong one
 *   broken    as passing, and the server could not read or write one of its files, or its user may not: perhaps a disk that
 *             fails in one place
 *   damaged   as passing, and a page that it read is damaged: what was asked for fails until it is restored
 *   lost      the connection ended, or our deadline passed, while the server had the statement
 *   defect    none of these: a constraint, or a statement that is wrong
 */
export type Fault =
  | "passing"
  | "full"
  | "exhausted"
  | "conflict"
  | "standby"
  | "broken"
  | "damaged"
  | "lost"
  | "defect";

/**
 * A statement was sent, and its outcome is not known: it may have been written, or still will be. Never `unavailable`, which
 * promises the opposite. A caller that keeps a mark of its writes (`lane.ts`) can find out.
 */
export class OutcomeUnknown extends Error {
  override readonly name = "OutcomeUnknown";

  constructor(override readonly cause: unknown) {
    super("The connection to the database ended before it answered, so it is not known whether it wrote");
  }
}

/** Our own deadline for a call has passed, and its connection is abandoned. */
export class DeadlinePassed extends Error {
  override readonly name = "DeadlinePassed";
}

/** What the database had confirmed to this node is not there any longer. */
export class DatabaseWentBack extends Error {
  override readonly name = "DatabaseWentBack";

  constructor() {
    super(
      "The database has gone back to an earlier state, as after a failover to a standby that lagged behind, so this server " +
        "joins anew; what was written last is lost. Try: set synchronous_standby_names in PostgreSQL, so that commits wait " +
        "for the standby.",
    );
  }
}

/** By SQLSTATE, whole or its class of two characters; the first match counts. Appendix A of PostgreSQL's manual. */
const bySqlState: readonly (readonly [prefix: string, fault: Fault])[] = [
  ["53100", "full"],
  ["53300", "exhausted"],
  // Out of memory.
  ["53", "passing"],
  ["25006", "standby"],
  ["40001", "conflict"],
  ["40P01", "conflict"],
  // The server itself does not know whether the commit took place.
  ["40003", "lost"],
  // A lock was not available in time; the statement exceeded its time.
  ["55P03", "passing"],
  ["57014", "passing"],
  // The server is starting, stopping or recovering, and takes no connections.
  ["57P03", "passing"],
  // No such user, password or database: only a new connection gets this.
  ["28", "passing"],
  ["3D000", "passing"],
  ["58", "broken"],
  // The user may not; also what a file system that has become read-only leads to.
  ["42501", "broken"],
  ["XX001", "damaged"],
  ["XX002", "damaged"],
  // The server ended the connection, for its own reasons or by a limit of time. One that was waiting for its standby is ended
  // after it has committed.
  ["57P", "lost"],
  ["25P03", "lost"],
  ["25P04", "lost"],
  ["08", "lost"],
];

/** What Bun reports for a connection that was never made. */
const neverConnected: ReadonlySet<string> = new Set([
  "ERR_POSTGRES_CONNECTION_REFUSED",
  "ERR_POSTGRES_CONNECTION_FAILED",
  "ERR_POSTGRES_CONNECTION_TIMEOUT",
  "ERR_POSTGRES_TLS_NOT_AVAILABLE",
  "ERR_POSTGRES_TLS_UPGRADE_FAILED",
]);

/** What Bun reports for a connection that ended. */
const ended: ReadonlySet<string> = new Set([
  "ERR_POSTGRES_CONNECTION_CLOSED",
  "ERR_POSTGRES_IDLE_TIMEOUT",
  "ERR_POSTGRES_LIFETIME_TIMEOUT",
]);

/** The SQLSTATE that the server sent. */
export const sqlStateOf = (error: unknown): string | undefined =>
  error instanceof SQL.PostgresError ? error.errno : undefined;

/** Explains the server's refusal of a text with U+0000 (`parameters.ts`) to whoever sent it. */
export function refuseZero(error: unknown): never {
  throw sqlStateOf(error) === "22021"
    ? invalid("A text of the request has the character U+0000; leave it out.")
    : error;
}

/** A breach of TLS: a handshake that failed, or what came on a connection that was in use. Bun does not say which. */
export const isTlsBroken = (error: unknown): boolean => codeOf(error) === "EPROTO";

export function faultOf(error: unknown): Fault {
  if (error instanceof DeadlinePassed || error instanceof OutcomeUnknown) return "lost";
  if (isCertificateRefused(error)) return "passing";
  if (isTlsBroken(error)) return "lost";
  if (!(error instanceof SQL.PostgresError)) return "defect";
  const { code, errno } = error;
  if (errno !== undefined) return bySqlState.find(([prefix]) => errno.startsWith(prefix))?.[1] ?? "defect";
  if (neverConnected.has(code)) return "passing";
  return ended.has(code) ? "lost" : "defect";
}

const storageRetrySeconds = 5;

/** How the refusal of a fault continues "The database", where there is more to say than that it does not answer. */
const refusals: Partial<Record<Fault, { text: string; code?: string }>> = {
  full: { text: "server's disk is full", code: "storage_full" },
  exhausted: { text: "has no connection free at the moment" },
  broken: { text: "cannot read or write its tables at the moment" },
};

/**
 * A fault that wrote nothing, as the error that the store's interface promises.
 * @param cause what the client or the server said
 */
export function storageUnavailable(fault: Fault, cause?: unknown): DomainError {
  if (fault === "damaged") return storageDamaged(cause);
  const { text, code = "storage_unavailable" } = refusals[fault] ?? { text: "does not answer at the moment" };
  return unavailable(`The database ${text}; retry later.`, code, storageRetrySeconds, cause);
}

/** Whether it may be a matter of the rows that a statement was for: with others it may succeed. */
export function isOfRows({ cause }: DomainError): boolean {
  const fault = faultOf(cause);
  return fault === "broken" || fault === "damaged";
}
