import { lookup } from "node:dns/promises";
import { StartupError } from "../../domain/errors.ts";
import { isCertificateRefused } from "../../lib/certificate.ts";
import { codeOf, messageOf } from "../../lib/error-message.ts";
import { sqlStateOf } from "./faults.ts";

/** The setting that the URL of the database comes from, unless a command says otherwise. */
export const databaseSetting = "POSTRIDER_DATABASE_URL";
/** A pooler does not know a setting that the connection asks for. */
export const connectionNotTaken = "08P01";

/** Host, port and database; never the password. */
export function addressOf(url: string, setting: string = databaseSetting): string {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || !/^postgres(ql)?:$/.test(parsed.protocol)) {
    throw new StartupError(
      `${setting} is not the URL of a PostgreSQL database. Try: ${setting}=postgres://user:password@host:5432/postrider`,
    );
  }
  return `${parsed.searchParams.get("path") ?? parsed.host}${parsed.pathname}`;
}

/** It recovers from a crash, or has only just begun. */
export const isStarting = (error: unknown) => sqlStateOf(error) === "57P03";

/**
 * The error that tells the operator why a database cannot be used, and what to do.
 * @param error the driver's own
 */
export async function unusable(error: unknown, url: string, setting: string = databaseSetting): Promise<StartupError> {
  const reason =
    (await knownReasonOf(error, url, setting)) ??
    `does not answer as it should (${messageOf(error)}). Try: check ${setting}, and that the server runs.`;
  return new StartupError(`The database at ${addressOf(url, setting)} ${reason}`);
}

/**
 * Why the server, or something on the way to it, refuses a connection, and what to do, as what continues "The database"; null
 * when its error does not tell.
 */
export async function knownReasonOf(
  error: unknown,
  url: string,
  setting: string = databaseSetting,
): Promise<string | null> {
  const message = messageOf(error);
  const state = sqlStateOf(error);
  const code = codeOf(error);
  if (state === "3D000") return `does not exist (${message}). Try: create it, or correct ${setting}.`;
  if (state?.startsWith("28")) return `refuses the user (${message}). Try: correct user and password in ${setting}.`;
  if (state === connectionNotTaken)
    return `does not take what a connection sets (${message}). Try: connect past the pooler.`;
  if (isStarting(error)) return `is not ready (${message}). Try: start again in a moment.`;
  if (state === "53100") return `has no room on its disk (${message}). Try: free some there.`;
  if (state !== undefined && /^(58|XX00[12])/.test(state)) {
    return `cannot read or write its files (${message}). Try: look into its log, and check its disk.`;
  }
  if (state === "42501") {
    return `does not let the user do it (${message}). Try: connect as the owner of the tables, and see whether its disk is read-only.`;
  }
  if (state === "55P03") {
    return (
      `has a table to be changed that a transaction holds (${message}). ` +
      "Try: end the transaction that has been open for longest (select * from pg_stat_activity order by xact_start)."
    );
  }
  if (state === "53300") {
    return `has no connection left (${message}). Try: raise max_connections, or the limit of that user or database.`;
  }
  if (untrusted.test(code)) {
    const remedy = `name the file of its authority in ${setting}: …?sslmode=verify-full&sslrootcert=/path/to/ca.pem`;
    return `has a certificate that nothing vouches for (${message}). Try: ${remedy}`;
  }
  if (isCertificateRefused(error)) {
    return `has the wrong certificate (${message}). Try: replace it, or correct the host in ${setting}.`;
  }
  if (unusableFile.has(code) && fileParameters.some((name) => new URL(url).searchParams.has(name))) {
    return (
      `is not asked, as a file that ${setting} names has no certificate or key that can be used (${message}). ` +
      "Try: check sslrootcert, sslcert and sslkey in it, and that this user can read the files."
    );
  }
  if (code === "ERR_POSTGRES_TLS_NOT_AVAILABLE") {
    return `offers no TLS, which sslmode in ${setting} asks for. Try: turn on ssl in postgresql.conf, or take sslmode out of the URL.`;
  }
  if (code === "ERR_POSTGRES_CONNECTION_REFUSED") return whyNotConnected(new URL(url), setting);
  return null;
}

/** Codes of OpenSSL for a certificate whose authority is not known here. */
const untrusted = /SELF_SIGNED|ISSUER_CERT|LEAF_SIGNATURE/;

/** Codes of the runtime for a file that is not there, or has not what it should have; they may be about other things as well. */
const unusableFile = new Set(["ERR_INVALID_ARG_TYPE", "ERR_BORINGSSL"]);
const fileParameters = ["sslrootcert", "sslcert", "sslkey"];

/** The client reports an unknown host as it reports a closed port. */
async function whyNotConnected({ hostname, searchParams }: URL, setting: string): Promise<string> {
  const isKnown = searchParams.has("path") || (await isResolved(hostname.replace(/^\[|\]$/g, "")));
  return isKnown
    ? `does not answer, as nothing listens there. Try: start PostgreSQL, or correct ${setting}.`
    : `cannot be found: ${hostname} is not the name of a host. Try: correct ${setting}, or check this machine's DNS.`;
}

const isResolved = (host: string): Promise<boolean> =>
  lookup(host).then(
    () => true,
    () => false,
  );
