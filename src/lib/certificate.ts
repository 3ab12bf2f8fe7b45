import { createPrivateKey, X509Certificate } from "node:crypto";
import { codeOf, messageOf } from "./error-message.ts";

/** A certificate chain and its private key, in PEM. */
export interface CertificatePair {
  readonly cert: string;
  readonly key: string;
}

const blocks = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** @throws when they are not certificates, or the key does not belong to the first one */
export function describePair({ cert, key }: CertificatePair): { subject: string; validTo: string } {
  const [own] = (cert.match(blocks) ?? []).map((block) => parse("certificate", () => new X509Certificate(block)));
  if (!own) throw new Error("The certificate file contains no certificate");
  const privateKey = parse("private key", () => createPrivateKey(key));
  if (!own.checkPrivateKey(privateKey)) throw new Error("The private key does not match the certificate");
  return { subject: own.subjectAltName ?? own.subject, validTo: own.validTo };
}

/** Codes of OpenSSL and of the runtime's own check of the host. */
const refusals = /CERT|LEAF_SIGNATURE|^INVALID_(?:CA|PURPOSE)$|^PATH_LENGTH_EXCEEDED$/;

/** Whether a TLS client has refused the server's certificate; it does so before it sends anything of what it is for. */
export const isCertificateRefused = (error: unknown): boolean => refusals.test(codeOf(error));

function parse<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Error(`The ${what} cannot be read (${messageOf(error)})`);
  }
}
