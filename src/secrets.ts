import { createHmac } from "node:crypto";

/** Their file names where they are kept: in a data directory, and in a backup of it. */
export const masterKeyFile = "master-key";
export const sessionSecretFile = "session-secret";
export const operatorTokenFile = "operator-token";
/** While the key is being replaced: the one that will take its place. */
export const nextMasterKeyFile = `${masterKeyFile}.next`;
/** After that, where no backup contains the key: the one that earlier backups need. */
export const formerMasterKeyFile = `${masterKeyFile}.before`;
export const secretFiles: readonly string[] = [masterKeyFile, nextMasterKeyFile, sessionSecretFile, operatorTokenFile];

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
 * What is derived for these survives the replacement of the master key: registered inbox addresses and references of
 * charges come from them, and servers that start later have to accept the sessions of those that are running.
 */
const outlivingPurposes: readonly string[] = [
  "inbox",
  "charge references",
  "sandbox payment processor",
  "operator session",
];

/** A secret for one purpose, which nobody can work out from another one; the same while the master key is. */
export const deriveSecret = (masterKey: Uint8Array, purpose: string): Buffer =>
  createHmac("sha256", masterKey).update(purpose).digest();

/** By this, servers tell each other which master key they have: nobody can work out the key from it. */
export const keyIdOf = (masterKey: Uint8Array): string =>
  deriveSecret(masterKey, "key id").toString("hex").slice(0, 16);

export const operatorTokenDigits = 48;
export const operatorTokenFrom = (hex: string): string => `svc_op_${hex.slice(0, operatorTokenDigits)}`;

/** The purposes of secrets that servers on one database derive, so that a session of one is a session of all. */
const sharedPurposes = { sessionSecret: "session", operatorToken: "operator" } as const;

/** Their values if no file says otherwise. */
export const sharedSecretsFrom = (masterKey: Uint8Array): Pick<Secrets, "sessionSecret" | "operatorToken"> =>
  sharedSecretsOf((purpose) => deriveSecret(masterKey, purpose));

export const sharedSecretsOf = (
  secretFor: (purpose: string) => Buffer,
): Pick<Secrets, "sessionSecret" | "operatorToken"> => ({
  sessionSecret: secretFor(sharedPurposes.sessionSecret).toString("hex"),
  operatorToken: operatorTokenFrom(secretFor(sharedPurposes.operatorToken).toString("hex")),
});

/** What outlives a master key, derived from this one: in hexadecimal digits, by purpose. */
export function outlivingSecrets(masterKey: Uint8Array, isShared: boolean): Readonly<Record<string, string>> {
  const purposes = isShared ? [...outlivingPurposes, ...Object.values(sharedPurposes)] : outlivingPurposes;
  return Object.fromEntries(purposes.map((purpose) => [purpose, deriveSecret(masterKey, purpose).toString("hex")]));
}

/**
 * The secrets of a server whose data moves to a database that others will share, as `outlivingSecrets`: all of them then have
 * these, and what they authenticated stays valid. One that somebody wrote in a form of their own cannot be passed on so.
 */
export function movingSecrets({ sessionSecret, operatorToken }: Pick<Secrets, "sessionSecret" | "operatorToken">) {
  const session = /^[0-9a-f]{64}$/.test(sessionSecret) ? sessionSecret : null;
  const digits = operatorToken.slice(-operatorTokenDigits);
  const operator = /^[0-9a-f]+$/.test(digits) && operatorTokenFrom(digits) === operatorToken ? digits : null;
  const moving: Readonly<Record<string, string>> = {
    ...(session !== null && { [sharedPurposes.sessionSecret]: session }),
    ...(operator !== null && { [sharedPurposes.operatorToken]: operator }),
  };
  const staying = [...(session === null ? [sessionSecretFile] : []), ...(operator === null ? [operatorTokenFile] : [])];
  return { moving, staying };
}

/**
 * The secrets of a server that shares its database, if the master key has been replaced since the others made theirs:
 * what it has made from its own key gives way to what follows from the first one.
 */
export function asOthersHave(secrets: Secrets, secretFor: (purpose: string) => Buffer) {
  const made = sharedSecretsFrom(secrets.masterKey);
  const others = sharedSecretsOf(secretFor);
  return {
    sessionSecret: secrets.sessionSecret === made.sessionSecret ? others.sessionSecret : secrets.sessionSecret,
    operatorToken: secrets.operatorToken === made.operatorToken ? others.operatorToken : secrets.operatorToken,
  };
}
