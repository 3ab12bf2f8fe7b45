import { createHmac } from "node:crypto";

/** What they are called where they are kept: in a data directory, and in a backup of it. */
export const masterKeyFile = "master-key";
export const sessionSecretFile = "session-secret";
export const operatorTokenFile = "operator-token";
export const secretFiles: readonly string[] = [masterKeyFile, sessionSecretFile, operatorTokenFile];

/** What the program knows and nobody else does, wherever it is kept. */
export interface Secrets {
  /** Encrypts what must be shown again: API keys, signing keys and secrets. 32 bytes. */
  readonly masterKey: Uint8Array;
  /** Signs session tokens. */
  readonly sessionSecret: string;
  /** What `postrider tenant …` and `/metrics` in public mode authenticate with, until it is rotated. */
  readonly operatorToken: string;
}

/**
 * What is derived for these stays when the master key is replaced: registered addresses of inboxes and references of charges
 * come from them.
 */
export const outlivingPurposes: readonly string[] = ["inbox", "charge references", "sandbox payment processor"];

/** A secret for one purpose, which nobody who has another one can work out; the same for as long as the master key is. */
export const deriveSecret = (masterKey: Uint8Array, purpose: string): Buffer =>
  createHmac("sha256", masterKey).update(purpose).digest();
