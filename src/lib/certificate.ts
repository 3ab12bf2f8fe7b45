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

const beginning = /(?=-----BEGIN (?:X509 )?CERTIFICATE-----)/;

/**
 * Certificate authorities to trust, in PEM. A TLS context would pass over what it cannot read, together with everything after it.
 * @throws when there are none, or one of them cannot be read
 */
export function checkAuthorities(pem: string): void {
  const each = pem.split(beginning).filter((part) => part.search(beginning) === 0);
  if (each.length === 0) throw new Error("It contains no certificate in PEM");
  for (const [at, certificate] of each.entries()) {
    parse(`certificate number ${at + 1}`, () => new X509Certificate(certificate));
  }
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
