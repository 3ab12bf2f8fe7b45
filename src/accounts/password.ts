import { invalidField, unavailable } from "../domain/errors.ts";
import { clientNetwork } from "../lib/cidr.ts";
import { createFairQueue, QueueFull } from "../lib/fair-queue.ts";

/** Bounds the work of one hash. */
export const maxPasswordBytes = 1024;

/** Specification, "Password rules". Letters of every alphabet that distinguishes upper and lower case count. */
const rules: readonly { text: string; holds(password: string): boolean }[] = [
  { text: "at least 8 characters", holds: (password) => [...password].length >= 8 },
  { text: "at least one uppercase letter", holds: (password) => /\p{Lu}/u.test(password) },
  { text: "at least one lowercase letter", holds: (password) => /\p{Ll}/u.test(password) },
  { text: "at least one digit", holds: (password) => /[0-9]/.test(password) },
  { text: "at least one special character from @ # $ % ^ & + = !", holds: (password) => /[@#$%^&+=!]/.test(password) },
  { text: "at most 1,024 bytes", holds: (password) => Buffer.byteLength(password) <= maxPasswordBytes },
];

/** `a, b and c`; not by `Intl`, whose data adds 5 ms to a start. */
const list = (texts: readonly string[]): string =>
  [texts.slice(0, -1).join(", "), ...texts.slice(-1)].filter((text) => text !== "").join(" and ");

/** The rules as one sentence, for the document. */
export const passwordRules = `Must have ${list(rules.map(({ text }) => text))}.`;

/** The rules, as far as JSON Schema can express them: it counts characters, not bytes. */
export const passwordSchema = {
  minLength: 8,
  maxLength: maxPasswordBytes,
  allOf: ["\\p{Lu}", "\\p{Ll}", "[0-9]", "[@#$%^&+=!]"].map((pattern) => ({ pattern })),
};

/**
 * Checks a new password. The message names every rule that is not met, and never the password.
 * @throws invalid `weak_password`
 */
export function checkPassword(password: string, field = "password"): void {
  const missed = rules.filter(({ holds }) => !holds(password)).map(({ text }) => text);
  if (missed.length > 0) throw invalidField(field, `must have ${list(missed)}`, "weak_password");
}

/** 64 characters, six bits each, without those that look alike or that a shell would interpret. */
const alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz23456789@#%^+=";

/** A password that meets the rules: 20 characters, about 119 bits. */
export function generatePassword(): string {
  for (;;) {
    let password = "";
    // 64 divides 256, so the low six bits of a byte are fair.
    for (const byte of crypto.getRandomValues(new Uint8Array(20))) password += alphabet.charAt(byte & 63);
    // One in six misses a digit or a special character. Drawing again keeps all that pass equally likely.
    if (rules.every(({ holds }) => holds(password))) return password;
  }
}

/** Cost parameters of argon2id. */
export interface PasswordCost {
  /** KiB. */
  readonly memoryCost: number;
  /** Passes over the memory. */
  readonly timeCost: number;
}

/** OWASP's minimum for argon2id, 26 ms here; Bun's own default takes 116 ms (hazards, section 5, "Passwords"). */
const owaspMinimum: PasswordCost = { memoryCost: 19_456, timeCost: 2 };

/** Hash of a random password that was not kept. A password for an unknown login id is compared with it. */
const dummyHash =
  "$argon2id$v=19$m=19456,t=2,p=1$GKtSTL+BJVPcn72ACWBVceTarxz5PUvk6EysI+tyKlA$MUiP1zj8P+3sQVuc3MUaYa4ggjwXo5LhjUF7y3gMKsQ";

/** Rules, section 4. Each takes 19 MiB and a core while it lasts. */
const hashesAtOnce = 4;

/** One to three seconds of work on two cores, by how fast they are: the longest that anybody should wait for an answer. */
const maxWaitingHashes = 100;

/** For whom a password is hashed. Accounts and networks take turns, so heavy users wait behind the others. */
export interface HashedFor {
  /** Its id, or the login id that was given; absent when there is none yet. */
  readonly account?: string;
  /** The client's address; absent for the operator. */
  readonly address?: string;
}

/** Hashes and verifies passwords. There is one instance for the whole server, because there is one limit. */
export interface Passwords {
  /** @throws unavailable `busy` */
  hash(password: string, whose: HashedFor): Promise<string>;
  /**
   * Returns false when there is no hash, after doing the same work.
   * @throws unavailable `busy`
   */
  verify(password: string, hash: string | null, whose: HashedFor): Promise<boolean>;
}

export function createPasswords({ cost = owaspMinimum, maxWaiting = maxWaitingHashes } = {}): Passwords {
  const turns = createFairQueue({ slots: hashesAtOnce, maxWaiting });

  async function inTurn<T>({ account, address }: HashedFor, task: () => Promise<T>): Promise<T> {
    const keys = [];
    if (account !== undefined) keys.push(`account ${account}`);
    if (address !== undefined) keys.push(`network ${clientNetwork(address)}`);
    try {
      return await turns.run(keys, task);
    } catch (error) {
      if (error instanceof QueueFull) throw tooManyHashes();
      throw error;
    }
  }

  return {
    hash: (password, whose) => inTurn(whose, () => Bun.password.hash(password, { algorithm: "argon2id", ...cost })),
    async verify(password, hash, whose) {
      const matches = await inTurn(whose, () => Bun.password.verify(password, hash ?? dummyHash));
      return matches && hash !== null;
    },
  };
}

export const tooManyHashes = () =>
  unavailable("Too many passwords are being checked at the moment; try again shortly.", "busy", 2);
