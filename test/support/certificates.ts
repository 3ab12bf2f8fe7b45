import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import ipaddr from "ipaddr.js";

/**
 * Throw-away certificates for tests, made in a millisecond each, so that no key is in the repository, none ever expires
 * there, and no `openssl` is needed. X.509 v3 with P-256 keys (RFC 5280), as much of it as TLS clients check.
 */
export interface Certificate {
  /** PEM, followed by the intermediate certificates if one of them issued it. */
  cert: string;
  /** PEM, PKCS #8. */
  key: string;
}

export interface Authority {
  /** PEM: what a client trusts. */
  cert: string;
  issue(options: LeafOptions): Certificate;
  /** An authority below this one. A server that does not send `cert` along with its own has an incomplete chain. */
  issueAuthority(name: string): Authority;
}

export interface LeafOptions {
  /** Names and addresses that the certificate is for. */
  hosts: readonly string[];
  /** @default an hour ago */
  notBefore?: Date;
  /** @default in an hour */
  notAfter?: Date;
}

export function createAuthority(name: string): Authority {
  const pair = createKeyPair();
  return authority(
    name,
    pair,
    certificate({ subject: name, issuer: name, pair, signer: pair.privateKey, hosts: null }),
  );
}

/** A self-signed certificate. */
export function createSelfSigned({ hosts, notBefore, notAfter }: LeafOptions): Certificate {
  const pair = createKeyPair();
  const name = hosts[0] ?? "";
  const cert = certificate({ subject: name, issuer: name, pair, signer: pair.privateKey, hosts, notBefore, notAfter });
  return { cert, key: exportKey(pair) };
}

function authority(name: string, own: KeyPair, cert: string): Authority {
  const signed = (subject: string, pair: KeyPair, rest: Pick<Contents, "hosts" | "notBefore" | "notAfter">) =>
    certificate({ subject, issuer: name, pair, signer: own.privateKey, ...rest });
  return {
    cert,
    issue({ hosts, notBefore, notAfter }) {
      const pair = createKeyPair();
      return { cert: signed(hosts[0] ?? "", pair, { hosts, notBefore, notAfter }), key: exportKey(pair) };
    },
    issueAuthority(below) {
      const pair = createKeyPair();
      return authority(below, pair, signed(below, pair, { hosts: null, notBefore: undefined, notAfter: undefined }));
    },
  };
}

interface KeyPair {
  publicKey: KeyObject;
  privateKey: KeyObject;
}

interface Contents {
  subject: string;
  issuer: string;
  pair: KeyPair;
  signer: KeyObject;
  /** null: an authority. */
  hosts: readonly string[] | null;
  notBefore?: Date | undefined;
  notAfter?: Date | undefined;
}

const hourMs = 3_600_000;

function createKeyPair(): KeyPair {
  return generateKeyPairSync("ec", { namedCurve: "P-256" });
}

const exportKey = ({ privateKey }: KeyPair) => privateKey.export({ type: "pkcs8", format: "pem" }).toString();

/** RFC 5280, section 4.1. */
function certificate({ subject, issuer, pair, signer, hosts, notBefore, notAfter }: Contents): string {
  const version3 = explicit(0, integer(Buffer.from([2])));
  const serial = integer(Buffer.concat([Buffer.from([1]), randomBytes(8)]));
  const validity = sequence(
    time(notBefore ?? new Date(Date.now() - hourMs)),
    time(notAfter ?? new Date(Date.now() + hourMs)),
  );
  const extension =
    hosts === null
      ? sequence(basicConstraints, critical, octets(sequence(der(0x01, Buffer.from([0xff])))))
      : sequence(subjectAltName, octets(sequence(...hosts.map(generalName))));
  const toBeSigned = sequence(
    version3,
    serial,
    ecdsaWithSha256,
    name(issuer),
    validity,
    name(subject),
    pair.publicKey.export({ type: "spki", format: "der" }),
    explicit(3, sequence(extension)),
  );
  const signature = sign("sha256", toBeSigned, signer);
  const whole = sequence(toBeSigned, ecdsaWithSha256, der(0x03, Buffer.from([0]), signature));
  const lines = whole.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

/** One DER value: tag, length, contents (X.690, section 8.1). */
function der(tag: number, ...contents: Uint8Array[]): Buffer {
  const body = Buffer.concat(contents);
  if (body.length < 0x80) return Buffer.concat([Buffer.from([tag, body.length]), body]);
  const digits = body.length.toString(16);
  const length = Buffer.from(digits.padStart(digits.length + (digits.length % 2), "0"), "hex");
  return Buffer.concat([Buffer.from([tag, 0x80 | length.length]), length, body]);
}

const sequence = (...contents: Uint8Array[]) => der(0x30, ...contents);
const integer = (bytes: Uint8Array) => der(0x02, bytes);
const octets = (...contents: Uint8Array[]) => der(0x04, ...contents);
const explicit = (tag: number, contents: Uint8Array) => der(0xa0 | tag, contents);
const objectId = (hex: string) => der(0x06, Buffer.from(hex, "hex"));

const critical = der(0x01, Buffer.from([0xff]));
const commonName = objectId("550403");
const subjectAltName = objectId("551d11");
const basicConstraints = objectId("551d13");
const ecdsaWithSha256 = sequence(objectId("2a8648ce3d040302"));

const name = (text: string) => sequence(der(0x31, sequence(commonName, der(0x0c, Buffer.from(text)))));

/** UTCTime, which RFC 5280 requires until 2049. */
const time = (date: Date) =>
  der(0x17, Buffer.from(`${date.toISOString().slice(2, 19).replace(/[-T:]/g, "")}Z`, "latin1"));

/** A name or an address of the subject (RFC 5280, section 4.2.1.6). */
const generalName = (host: string) =>
  ipaddr.isValid(host) ? der(0x87, Buffer.from(ipaddr.parse(host).toByteArray())) : der(0x82, Buffer.from(host));
