import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
// The smaller of its two builds: a check takes a few milliseconds more, but every visitor downloads less.
import nacl from "tweetnacl/nacl.js";
import { duration } from "../format/time.ts";
import { fromBase64, fromBase64Url, toBase64 } from "./base64.ts";
import { type PastedHeaders, parseHeaders } from "./pasted-headers.ts";

/**
 * Whether a delivery that somebody received is genuine (rules, section 8, "Signature"). Everything is computed here, in
 * JavaScript: a page on plain http has no WebCrypto, and nothing that is pasted leaves the page.
 */

export interface PastedDelivery {
  /** Header lines, what `curl -v` printed, or JSON. */
  headers: string;
  /** The body as received. */
  body: string;
  /** The response of `GET /v1/tenants/{tenantId}/jwks.json`. */
  jwks: { readonly keys: readonly PublishedKey[] };
  /** `whsec_…`; without it `v1` is not checked. */
  signingSecret?: string | undefined;
  nowMs: number;
}

export interface PublishedKey {
  readonly kid: string;
  readonly x: string;
}

export interface Finding {
  readonly check: "service-signature" | "webhook-signature-v1" | "webhook-signature-v1a" | "webhook-timestamp";
  /**
   * `unknown_key`: the header names a key that is not in the set. `not_checked`: what the check needs was not given.
   * `warning`: what is signed is as signed, but receivers may still refuse it.
   */
  readonly verdict: "valid" | "invalid" | "missing" | "unknown_key" | "not_checked" | "warning";
  /** One or two sentences. */
  readonly message: string;
}

type Verdict = Omit<Finding, "check">;

/** The tolerance that Standard Webhooks asks of receivers, in both directions. */
const toleranceMs = 5 * 60 * 1000;

/** All four checks, each run whatever the outcome of the others. */
export function verifyDelivery({ headers, body, jwks, signingSecret, nowMs }: PastedDelivery): Finding[] {
  const given = parseHeaders(headers);
  const keys = keysFor(given, jwks.keys);
  return [
    { check: "service-signature", ...checkServiceSignature(given, body, keys) },
    { check: "webhook-signature-v1", ...checkShared(given, body, signingSecret?.trim() ?? "") },
    { check: "webhook-signature-v1a", ...checkPublic(given, body, keys) },
    { check: "webhook-timestamp", ...checkTimestamp(given, nowMs) },
  ];
}

// ---------------------------------------------------------------- the checks

function checkServiceSignature(headers: PastedHeaders, body: string, keys: Keys): Verdict {
  const header = "Service-Signature";
  const signature = first(headers, header);
  if (signature === undefined) return missing(header);
  const bytes = signatureBytes(signature);
  if (!bytes) return invalid(`${header} is not 64 bytes in base64.`);
  if ("verdict" in keys) return keys;
  return judge(header, body, (candidate) => keys.find((key) => isSignedBy(key, utf8.encode(candidate), bytes)));
}

/** `v1a`: the public key again, over id, time and body. */
function checkPublic(headers: PastedHeaders, body: string, keys: Keys): Verdict {
  const about = signed(headers, "v1a");
  if ("verdict" in about) return about;
  const signatures = about.signatures.map(signatureBytes).filter((bytes) => bytes !== null);
  if (signatures.length === 0) return invalid("The v1a signature is not 64 bytes in base64.");
  if ("verdict" in keys) return keys;
  return judge("The v1a signature", body, (candidate) => {
    const content = utf8.encode(about.prefix + candidate);
    return keys.find((key) => signatures.some((bytes) => isSignedBy(key, content, bytes)));
  });
}

/** `v1`: by the shared secret. During a rotation there are two, one of which must match. */
function checkShared(headers: PastedHeaders, body: string, signingSecret: string): Verdict {
  const about = signed(headers, "v1");
  if ("verdict" in about) return about;
  if (signingSecret === "") return { verdict: "not_checked", message: "Checking v1 requires the signing secret." };
  const secret = signingSecret.startsWith("whsec_") ? fromBase64(signingSecret.slice("whsec_".length)) : null;
  if (!secret) return { verdict: "not_checked", message: "The signing secret must be whsec_ followed by base64." };
  return judge("The v1 signature", body, (candidate) => {
    const expected = toBase64(hmac(sha256, secret, utf8.encode(about.prefix + candidate)));
    return about.signatures.includes(expected) ? { name: "this secret" } : undefined;
  });
}

function checkTimestamp(headers: PastedHeaders, nowMs: number): Verdict {
  const header = "webhook-timestamp";
  const given = first(headers, header);
  if (given === undefined) return missing(header);
  if (!/^\d{1,12}$/.test(given)) return invalid(`${header} must be a number of seconds.`);
  const age = nowMs - Number(given) * 1000;
  if (age > toleranceMs) {
    const message = `The delivery was sent ${duration(age)} ago. Receivers refuse deliveries older than 5 min, because an attacker could be resending them.`;
    return { verdict: "warning", message };
  }
  if (age < -toleranceMs) {
    const message = `The delivery claims to have been sent ${duration(-age)} from now; one of the two clocks is wrong.`;
    return { verdict: "warning", message };
  }
  return valid(age < 1000 ? "The delivery was sent just now." : `The delivery was sent ${duration(age)} ago.`);
}

// ---------------------------------------------------------------- what they share

const utf8 = new TextEncoder();

const valid = (message: string): Verdict => ({ verdict: "valid", message });
const invalid = (message: string): Verdict => ({ verdict: "invalid", message });
const missing = (header: string): Verdict => ({
  verdict: "missing",
  message: `${header} is missing from the headers.`,
});

const first = (headers: PastedHeaders, name: string) => headers.get(name.toLowerCase())?.[0];

/** Pasting changes a body in these ways; saying so saves the user a search. */
const changes = [
  { change: (body: string) => body, said: null },
  { change: (body: string) => body.replace(/\r?\n$/, ""), said: "without its trailing line break" },
  { change: (body: string) => body.replaceAll("\r\n", "\n"), said: "with LF line endings" },
];

/** @param whoSigned names the key behind the signature over a body */
function judge(subject: string, body: string, whoSigned: (body: string) => { name: string } | undefined): Verdict {
  for (const { change, said } of changes) {
    const candidate = change(body);
    const signer = said !== null && candidate === body ? undefined : whoSigned(candidate);
    if (!signer) continue;
    if (said === null) return valid(`${subject} matches the body and ${signer.name}.`);
    return invalid(`${subject} matches the body ${said}, but not as it stands here.`);
  }
  return invalid(
    `${subject} does not match. It covers the exact bytes that were sent: a body that was parsed and serialized again is a different one.`,
  );
}

interface Key {
  name: string;
  bytes: Uint8Array;
}

/** The keys to try, or why there are none. */
type Keys = readonly Key[] | Verdict;

/** The key that the delivery names; all published keys when it names none. */
function keysFor(headers: PastedHeaders, published: readonly PublishedKey[]): Keys {
  const id = first(headers, "Service-Key-Id");
  const keys = published.flatMap(({ kid, x }): (Key & { kid: string })[] => {
    const bytes = fromBase64Url(x);
    return bytes?.length === nacl.sign.publicKeyLength ? [{ kid, name: `the key ${kid}`, bytes }] : [];
  });
  if (id === undefined) return keys;
  const named = keys.filter(({ kid }) => kid === id);
  if (named.length > 0) return named;
  return {
    verdict: "unknown_key",
    message: `Service-Key-Id names ${id}, which is not one of this account's keys: it belongs to another account or was retired.`,
  };
}

function signatureBytes(text: string): Uint8Array | null {
  const bytes = fromBase64(text);
  return bytes?.length === nacl.sign.signatureLength ? bytes : null;
}

const isSignedBy = ({ bytes }: Key, content: Uint8Array, signature: Uint8Array) =>
  nacl.sign.detached.verify(content, signature, bytes);

/** The signatures of one version in `webhook-signature`, and what precedes the body in the text they sign. */
function signed(
  headers: PastedHeaders,
  version: "v1" | "v1a",
): { signatures: readonly string[]; prefix: string } | Verdict {
  const given = headers.get("webhook-signature");
  if (!given) return missing("webhook-signature");
  const id = first(headers, "webhook-id");
  const timestamp = first(headers, "webhook-timestamp");
  if (id === undefined) return missing("webhook-id");
  if (timestamp === undefined) return missing("webhook-timestamp");
  const signatures = given
    .flatMap((value) => value.split(/[ ]+/))
    .filter((item) => item.startsWith(`${version},`))
    .map((item) => item.slice(version.length + 1));
  if (signatures.length === 0) return { verdict: "missing", message: `webhook-signature has no ${version} signature.` };
  return { signatures, prefix: `${id}.${timestamp}.` };
}
