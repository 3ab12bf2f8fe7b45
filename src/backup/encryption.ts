import { StartupError } from "../domain/errors.ts";

/** Encryption to a public key, in the format of the program `age` (age-encryption.org/v1). */

const magic = "age-encryption.org/v1\n";
/** The first bytes tell, whatever a file is called. */
export const isEncrypted = (start: Uint8Array): boolean =>
  Buffer.from(start.subarray(0, magic.length)).toString("latin1") === magic;

/** Somebody who can read what was encrypted, for as long as this process lives. */
export async function newIdentity(recipient: string): Promise<{ identity: string; recipient: string }> {
  const age = await load();
  // Keys of both kinds in one file would make it as weak as the weaker one.
  const identity = recipient.startsWith("age1pq")
    ? await age.generateHybridIdentity()
    : await age.generateX25519Identity();
  return { identity, recipient: await age.identityToRecipient(identity) };
}

export async function* encrypt(
  source: AsyncIterable<Uint8Array>,
  recipients: readonly string[],
): AsyncGenerator<Uint8Array> {
  const age = await load();
  const encrypter = new age.Encrypter();
  for (const recipient of recipients) encrypter.addRecipient(recipient);
  yield* await encrypter.encrypt(streamOf(source));
}

/** @throws StartupError when no identity is one of its recipients' */
export async function* decrypt(
  source: AsyncIterable<Uint8Array>,
  identities: readonly string[],
): AsyncGenerator<Uint8Array> {
  const age = await load();
  const decrypter = new age.Decrypter();
  for (const identity of identities) decrypter.addIdentity(identity);
  let plain: ReadableStream<Uint8Array>;
  try {
    plain = await decrypter.decrypt(streamOf(source));
  } catch {
    // Its head is read by then, and nothing of it is for any of them, or it is damaged.
    throw new StartupError(
      "The backup cannot be decrypted with that identity. Try: --identity with the file of the key that it was encrypted for.",
    );
  }
  try {
    yield* plain;
  } catch (error) {
    // The library names the part of its format, which tells nobody anything. What the source has to say stays.
    throw error instanceof StartupError ? error : new Error("it is damaged or cut short", { cause: error });
  }
}

/** @throws StartupError when a line of it is neither a comment nor an identity */
export function parseIdentities(text: string, file: string): string[] {
  const lines = text.split(/\r?\n/).map((line) => line.trim());
  const identities = lines.filter((line) => line !== "" && !line.startsWith("#"));
  if (identities.length > 0 && identities.every((line) => /^AGE-SECRET-KEY-(PQ-)?1[A-Z0-9]+$/.test(line)))
    return identities;
  throw new StartupError(
    `${file} is not an age identity file. Try: the file that age-keygen wrote, with a line that begins with AGE-SECRET-KEY-1.`,
  );
}

/** What only some backups need is no part of every start. */
const load = () => import("age-encryption");

function streamOf(source: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const chunks = source[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await chunks.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await chunks.return?.();
    },
  });
}
