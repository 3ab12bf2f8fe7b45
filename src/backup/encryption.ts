import { StartupError } from "../domain/errors.ts";

/** Encryption to a public key, in the format of the program `age` (age-encryption.org/v1). */

const magic = "age-encryption.org/v1\n";
/** Goes by the first bytes, whatever the file is called. */
export const isEncrypted = (start: Uint8Array): boolean =>
  Buffer.from(start.subarray(0, magic.length)).toString("latin1") === magic;

/** An identity that exists only for the life of this process, and can decrypt what is encrypted to it. */
export async function newIdentity(recipient: string): Promise<{ identity: string; recipient: string }> {
  const age = await load();
  // Mixing both kinds of keys in one file would make it only as strong as the weaker kind.
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

/** @throws StartupError when none of the identities matches a recipient */
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
    // By now the header has been read: either none of its entries is for any of these identities, or it is damaged.
    throw new StartupError(
      "The backup cannot be decrypted with that identity. Try: --identity with the file of the key that it was encrypted for.",
    );
  }
  try {
    yield* plain;
  } catch (error) {
    // The library names the part of its format, which tells the user nothing. Errors from the source are passed on unchanged.
    throw error instanceof StartupError ? error : new Error("it is damaged or cut short", { cause: error });
  }
}

/** @throws StartupError when a line is neither a comment nor an identity */
export function parseIdentities(text: string, file: string): string[] {
  const lines = text.split(/\r?\n/).map((line) => line.trim());
  const identities = lines.filter((line) => line !== "" && !line.startsWith("#"));
  if (identities.length > 0 && identities.every((line) => /^AGE-SECRET-KEY-(PQ-)?1[A-Z0-9]+$/.test(line)))
    return identities;
  throw new StartupError(
    `${file} is not an age identity file. Try: the file that age-keygen wrote, with a line that begins with AGE-SECRET-KEY-1.`,
  );
}

/** Loaded on demand: only some backups need it, so it should not be part of every start. */
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
