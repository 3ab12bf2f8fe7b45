/**
 * Identifiers and the random values in them (rules, sections 2 and 5). Text is lower-case Crockford base32, which has
 * no `i`, `l`, `o`, `u`, unless said otherwise.
 */

const crockford = "0123456789abcdefghjkmnpqrstvwxyz";
const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Sequence numbers per millisecond. 2^42 ms times 2^11 is 2^53: sequence numbers stay safe integers until May 2109. */
const perMs = 2048;
const eventPrefix = "evt_";

/**
 * The sequence number of the next event: `ingestion time in ms * 2048 + n`, always above `lastSeq`, the highest one ever
 * given.
 *
 * Numbers grow even when the clock steps back or a millisecond holds more than 2,048 events: then they run ahead of
 * the clock until it has caught up. Because the ingestion time is read from the number (`ingestedAtMs`), the order of
 * numbers, of ids and of ingestion times is one order.
 *
 * Pure, so that a transaction that is rolled back takes its numbers back with it.
 */
export const nextEventSeq = (lastSeq: number, nowMs: number): number =>
  Math.max(lastSeq + 1, Math.floor(nowMs) * perMs);

/** The ingestion time that a sequence number carries, in milliseconds since the Unix epoch. */
export const ingestedAtMs = (seq: number): number => Math.floor(seq / perMs);

/** The lowest sequence number of a millisecond: "ingested at `ms` or later" is `seq >= firstSeqAt(ms)`. */
export const firstSeqAt = (ms: number): number => ms * perMs;

/**
 * Writes the id of the event with this number: `evt_` and the TypeID form (26 characters) of a UUIDv7 (RFC 9562, section
 * 5.7). Its 48 bits of time are the ingestion time, rand_a (12 bits) is `seq mod 2048`, rand_b (62 bits) is the tail, so
 * ids sort like sequence numbers and cannot be guessed from them.
 *
 * @param tail 8 bytes, see `randomTail`; the top two bits are overwritten by the variant
 * @throws RangeError when `seq` is not a safe integer from 0 up or the tail is not 8 bytes
 */
export function encodeEventId(seq: number, tail: Uint8Array): string {
  if (!Number.isSafeInteger(seq) || seq < 0) throw new RangeError(`${seq} is not an event sequence number`);
  if (tail.length !== 8) throw new RangeError(`The tail of an event id must be 8 bytes, not ${tail.length}`);
  const ms = Math.floor(seq / perMs);
  const versionAndN = 0x7000 | (seq % perMs);
  const variant = 0x80 | (byteOf(tail, 0) & 0x3f);
  const middle = (byteOf(tail, 3) << 16) | (byteOf(tail, 4) << 8) | byteOf(tail, 5);
  // 130 bits in groups of ten-bit pairs: two bits of padding and the time (30 + 20 bits),
  // then version, rand_a, variant and rand_b (4 times 20 bits).
  return (
    eventPrefix +
    pairs30(Math.floor(ms / 0x100000)) +
    pairs20(ms % 0x100000) +
    pairs20((versionAndN << 4) | (variant >> 4)) +
    pairs20(((variant & 15) << 16) | (byteOf(tail, 1) << 8) | byteOf(tail, 2)) +
    pairs20(middle >> 4) +
    pairs20(((middle & 15) << 16) | (byteOf(tail, 6) << 8) | byteOf(tail, 7))
  );
}

const byteOf = (bytes: Uint8Array, at: number): number => bytes[at] ?? 0;

/** All 1,024 pairs of characters, so that an id is 13 look-ups. */
const pairs = Array.from({ length: 1024 }, (_, bits) => crockford.charAt(bits >> 5) + crockford.charAt(bits & 31));
const pairs20 = (bits: number) => `${pairs[bits >> 10]}${pairs[bits & 1023]}`;
const pairs30 = (bits: number) => `${pairs[bits >> 20]}${pairs20(bits & 0xfffff)}`;

/**
 * Reads an event id. Strict, so that each event has one spelling: anything that `encodeEventId` does not write (upper
 * case, another UUID version, a time after 2109 …) is null.
 */
export function parseEventId(text: string): { seq: number; tail: Uint8Array } | null {
  if (text.length !== eventPrefix.length + 26 || !text.startsWith(eventPrefix)) return null;
  const timeHigh = decode20(text, 4, 2);
  const timeMiddle = decode20(text, 6);
  const timeLow = decode20(text, 10);
  const versionAndN = decode20(text, 14);
  const high = decode20(text, 18);
  const middle = decode20(text, 22);
  const low = decode20(text, 26);
  if ((timeHigh | timeMiddle | timeLow | versionAndN | high | middle | low) < 0) return null;
  // 50 bits, of which the format uses 48 and safe sequence numbers 42.
  const ms = timeHigh * 2 ** 40 + timeMiddle * 2 ** 20 + timeLow;
  if (ms >= 2 ** 42) return null;
  // The version is 7, and as n is below 2,048 the bit after it is 0; the variant of RFC 9562 is the bits 10.
  if (versionAndN >> 15 !== 0b01110) return null;
  const variant = ((versionAndN & 15) << 4) | (high >> 16);
  if (variant >> 6 !== 0b10) return null;
  const tail = new Uint8Array(8);
  tail[0] = variant;
  tail[1] = high >> 8; // a Uint8Array keeps the low eight bits
  tail[2] = high;
  tail[3] = middle >> 12;
  tail[4] = middle >> 4;
  tail[5] = (middle << 4) | (low >> 16);
  tail[6] = low >> 8;
  tail[7] = low;
  return { seq: ms * perMs + ((versionAndN >> 4) & (perMs - 1)), tail };
}

/** The ingestion time that an event id carries; 0 for a text that is none. */
export const ingestedAtOf = (eventId: string): number => ingestedAtMs(parseEventId(eventId)?.seq ?? 0);

/** The value of each ASCII character in the alphabet; -1 for those outside. */
const values = new Int8Array(128).fill(-1);
for (let value = 0; value < crockford.length; value++) values[crockford.charCodeAt(value)] = value;

/** The bits of four characters (or fewer); negative when one of them is not in the alphabet. */
function decode20(text: string, start: number, length = 4): number {
  let bits = 0;
  let invalid = 0;
  for (let at = start; at < start + length; at++) {
    const value = values[text.charCodeAt(at)] ?? -1;
    invalid |= value;
    bits = (bits << 5) | (value & 31);
  }
  return invalid < 0 ? -1 : bits;
}

/**
 * The random part of an event id: 8 bytes, with the variant already in the top two bits, so that `parseEventId` returns exactly
 * these bytes. `getRandomValues` draws from a pool of the runtime and takes 20 ns; `randomBytes` of node:crypto takes 550.
 */
export function randomTail(): Uint8Array {
  const tail = crypto.getRandomValues(new Uint8Array(8));
  tail[0] = 0x80 | (byteOf(tail, 0) & 0x3f);
  return tail;
}

/** Bytes as text, five bits per character; the last one is padded with zeros. */
export function encodeBase32(bytes: Uint8Array): string {
  let text = "";
  let bits = 0;
  let held = 0;
  for (const byte of bytes) {
    bits = ((bits << 8) | byte) & 0xfff;
    held += 8;
    for (; held >= 5; held -= 5) text += crockford.charAt((bits >> (held - 5)) & 31);
  }
  return held === 0 ? text : text + crockford.charAt((bits << (5 - held)) & 31);
}

/** A random token with at least `bits` bits of entropy, in Crockford base32. */
export function newToken(bits: number): string {
  let token = "";
  // 32 divides 256, so the low five bits of a byte are fair.
  for (const byte of crypto.getRandomValues(new Uint8Array(Math.ceil(bits / 5)))) token += crockford.charAt(byte & 31);
  return token;
}

/** `t` and 13 random characters (65 bits). The store's unique index rejects a repetition. */
export const newTenantId = (): string => `t${newToken(65)}`;

/** An id for what has no order of its own: `wh_` webhooks, `key_` keys, `rpl_` replays … and 26 random characters (130 bits). */
export const newId = (prefix: string): string => `${prefix}_${newToken(130)}`;

/** An API key: `svc_sk_` and 40 random characters of base62 (238 bits). */
export function newApiKey(): string {
  let key = "";
  while (key.length < 40) {
    for (const byte of crypto.getRandomValues(new Uint8Array(48))) {
      // 248 is the largest multiple of 62 in a byte: taking the rest modulo 62 would favour eight characters.
      if (byte < 248 && key.length < 40) key += base62.charAt(byte % 62);
    }
  }
  return `svc_sk_${key}`;
}
