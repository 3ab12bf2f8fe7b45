import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  encodeBase32,
  encodeEventId,
  firstSeqAt,
  ingestedAtMs,
  ingestedAtOf,
  newApiKey,
  newId,
  newTenantId,
  newToken,
  nextEventSeq,
  parseEventId,
  randomTail,
} from "../../src/lib/id.ts";

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
const lastSeq = Number.MAX_SAFE_INTEGER;
const now = Date.UTC(2026, 2, 1, 12);

const seqs = fc.oneof(
  fc.maxSafeNat(),
  fc.nat({ max: 5000 }),
  fc.nat({ max: 5000 }).map((n) => lastSeq - n),
);
const tails = fc.uint8Array({ minLength: 8, maxLength: 8 });

/** The 128 bits behind the 26 characters, by plain arithmetic: an independent reading of the TypeID form. */
const bitsOf = (id: string) => [...id.slice(4)].reduce((bits, char) => bits * 32n + BigInt(alphabet.indexOf(char)), 0n);

const idOf = (bits: bigint) =>
  `evt_${Array.from({ length: 26 }, (_, at) => alphabet[Number((bits >> BigInt(5 * (25 - at))) & 31n)]).join("")}`;

/** Gives one number after the other, as the writer does. */
function createEventSequence(last = 0) {
  return {
    next(nowMs: number) {
      last = nextEventSeq(last, nowMs);
      return last;
    },
  };
}

describe("the event sequence", () => {
  test("begins with the millisecond and counts inside it", () => {
    const sequence = createEventSequence();
    expect(sequence.next(now)).toBe(now * 2048);
    expect(sequence.next(now)).toBe(now * 2048 + 1);
    expect(sequence.next(now + 1)).toBe((now + 1) * 2048);
  });

  test("goes on from the last number when the clock steps back", () => {
    const sequence = createEventSequence();
    const before = sequence.next(now);
    expect(sequence.next(now - 3_600_000)).toBe(before + 1);
    expect(sequence.next(now + 1)).toBe((now + 1) * 2048);
  });

  test("goes on above the highest number of an earlier process", () => {
    const stored = (now + 60_000) * 2048 + 7;
    expect(createEventSequence(stored).next(now)).toBe(stored + 1);
  });

  test("runs into the next millisecond after 2,048 numbers", () => {
    const sequence = createEventSequence();
    for (let n = 0; n < 2048; n++) expect(ingestedAtMs(sequence.next(now))).toBe(now);
    expect(ingestedAtMs(sequence.next(now))).toBe(now + 1);
  });

  test("strictly increases, and never lags behind the clock, whatever the clock does", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.nat({ max: 2 ** 41 }), fc.double({ min: 0, max: 1e6, noNaN: true }))),
        (clock) => {
          const sequence = createEventSequence();
          let last = 0;
          for (const ms of clock) {
            const seq = sequence.next(ms);
            expect(Number.isSafeInteger(seq)).toBe(true);
            expect(seq).toBeGreaterThan(last);
            expect(ingestedAtMs(seq)).toBeGreaterThanOrEqual(Math.floor(ms));
            last = seq;
          }
        },
      ),
    );
  });

  test("takes nothing when it is only asked: the caller keeps the last number", () => {
    expect(nextEventSeq(0, now)).toBe(now * 2048);
    expect(nextEventSeq(0, now)).toBe(now * 2048);
    expect(nextEventSeq(now * 2048, now)).toBe(now * 2048 + 1);
  });

  test("is cut by time with firstSeqAt", () => {
    expect(ingestedAtMs(firstSeqAt(now))).toBe(now);
    expect(ingestedAtMs(firstSeqAt(now) - 1)).toBe(now - 1);
  });
});

describe("an event id", () => {
  test("is the TypeID form of a UUIDv7 with the known bits in their places", () => {
    // UUID 0195-51b8-2a80-7003-bfff-ffff-ffff-ffff: 48 bits of time, version 7, n = 3, variant 10, 62 ones.
    const ms = 0x019551b82a80;
    const id = encodeEventId(ms * 2048 + 3, new Uint8Array(8).fill(0xff));
    expect(bitsOf(id).toString(16).padStart(32, "0")).toBe("019551b82a807003bfffffffffffffff");
    expect(id).toMatch(/^evt_0[0-9a-z]{25}$/);
  });

  test("has the version, the variant, the time and the number of RFC 9562 for every sequence number", () => {
    fc.assert(
      fc.property(seqs, tails, (seq, tail) => {
        const bits = bitsOf(encodeEventId(seq, tail));
        expect(bits >> 80n).toBe(BigInt(ingestedAtMs(seq)));
        expect((bits >> 76n) & 15n).toBe(7n);
        expect((bits >> 64n) & 4095n).toBe(BigInt(seq % 2048));
        expect((bits >> 62n) & 3n).toBe(2n);
        expect(bits & (2n ** 62n - 1n)).toBe(BigInt(`0x${tail.toHex()}`) & (2n ** 62n - 1n));
      }),
    );
  });

  test("reads back as what was written", () => {
    fc.assert(
      fc.property(seqs, tails, (seq, tail) => {
        const withVariant = tail.with(0, 0x80 | ((tail[0] ?? 0) & 0x3f));
        const id = encodeEventId(seq, tail);
        expect(parseEventId(id)).toEqual({ seq, tail: withVariant });
        expect(ingestedAtOf(id)).toBe(ingestedAtMs(seq));
        expect(encodeEventId(seq, withVariant)).toBe(id);
      }),
    );
  });

  test("sorts as its sequence number, whatever the tails", () => {
    fc.assert(
      fc.property(seqs, seqs, tails, tails, (a, b, tailOfA, tailOfB) => {
        fc.pre(a !== b);
        expect(encodeEventId(a, tailOfA) < encodeEventId(b, tailOfB)).toBe(a < b);
      }),
    );
  });

  test("exists for the first and the last sequence number, and for none outside", () => {
    const tail = randomTail();
    expect(parseEventId(encodeEventId(0, tail))).toEqual({ seq: 0, tail });
    expect(parseEventId(encodeEventId(lastSeq, tail))).toEqual({ seq: lastSeq, tail });
    expect(new Date(ingestedAtMs(lastSeq)).getUTCFullYear()).toBe(2109);
    for (const seq of [-1, 0.5, lastSeq + 1, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => encodeEventId(seq, tail)).toThrow(RangeError);
    }
    expect(() => encodeEventId(1, tail.subarray(1))).toThrow(RangeError);
  });

  const id = encodeEventId(now * 2048 + 5, randomTail());
  const bits = bitsOf(id);
  test.each([
    ["nothing", ""],
    ["another prefix", id.replace("evt_", "evn_")],
    ["no prefix", id.slice(4)],
    ["an upper-case prefix", id.replace("evt_", "EVT_")],
    ["upper case", `evt_${id.slice(4).toUpperCase()}`],
    ["one character less", id.slice(0, -1)],
    ["one character more", `${id}0`],
    ["white space behind", `${id.slice(0, -1)} `],
    ["letters outside the alphabet", `${id.slice(0, -1)}i`],
    ["o for zero", id.replace("evt_0", "evt_o")],
    ["a character beyond ASCII", `${id.slice(0, -1)}é`],
    ["a character beyond the first plane", `${id.slice(0, -2)}🦉`],
    ["a first character above 7", id.replace("evt_0", "evt_8")],
    ["a time after 2109", idOf(bits | (1n << 122n))],
    ["the UUID version 6", idOf(bits ^ (1n << 76n))],
    ["the UUID version 15", idOf(bits | (15n << 76n))],
    ["a number above 2047", idOf(bits | (1n << 75n))],
    ["the variant 0", idOf(bits & ~(3n << 62n))],
    ["the variant 3", idOf(bits | (3n << 62n))],
    ["a UUID", "019551b8-2a80-7003-bfff-ffffffffffff"],
  ])("is not %s", (_, text) => {
    expect(parseEventId(id)).not.toBeNull();
    expect(parseEventId(text)).toBeNull();
  });

  test("has exactly one spelling: what parses is what would be written", () => {
    const text = fc.oneof(
      fc.string(),
      fc
        .tuple(fc.nat({ max: 29 }), fc.constantFrom(...alphabet, "I", "l", "U", " ", "_", "\u0130"))
        .map(([at, char]) => id.slice(0, at) + char + id.slice(at + 1)),
    );
    fc.assert(
      fc.property(text, (candidate) => {
        const parsed = parseEventId(candidate);
        if (parsed) expect(encodeEventId(parsed.seq, parsed.tail)).toBe(candidate);
      }),
      { numRuns: 1000 },
    );
  });
});

describe("encodeBase32", () => {
  test.each([
    ["", ""],
    ["00", "00"],
    ["ff", "zw"],
    ["0842108421", "11111111"],
    ["ffffffffff", "zzzzzzzz"],
    ["00000000000000000000000000000001", "00000000000000000000000004"],
    ["80000000000000000000000000000000", "g0000000000000000000000000"],
  ])("%p is %p", (hex, text) => {
    expect(encodeBase32(Uint8Array.fromHex(hex))).toBe(text);
  });

  test("is the number in base 32, whatever its length", () => {
    const digits = "0123456789abcdefghijklmnopqrstuv";
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 40 }), (given) => {
        const length = Math.ceil((given.length * 8) / 5);
        const number = BigInt(`0x${given.toHex()}`) << BigInt(length * 5 - given.length * 8);
        const expected = [...number.toString(32).padStart(length, "0")].map((digit) => alphabet[digits.indexOf(digit)]);
        expect(encodeBase32(given)).toBe(expected.join(""));
      }),
    );
  });
});

describe("random values", () => {
  test.each([
    ["a tenant id", newTenantId, /^t[0-9a-hjkmnp-tv-z]{13}$/],
    ["a webhook id", () => newId("wh"), /^wh_[0-9a-hjkmnp-tv-z]{26}$/],
    ["a replay id", () => newId("rpl"), /^rpl_[0-9a-hjkmnp-tv-z]{26}$/],
    ["an API key", newApiKey, /^svc_sk_[0-9A-Za-z]{40}$/],
    ["a token of 128 bits", () => newToken(128), /^[0-9a-hjkmnp-tv-z]{26}$/],
  ] as const)("%s has its form and does not repeat", (_, make, form) => {
    const made = Array.from({ length: 1000 }, make);
    for (const value of made) expect(value).toMatch(form);
    expect(new Set(made).size).toBe(made.length);
  });

  test("tails carry the variant, own their memory and do not repeat", () => {
    const made = Array.from({ length: 2000 }, randomTail);
    for (const tail of made) expect([tail.length, tail.buffer.byteLength, (tail[0] ?? 0) >> 6]).toEqual([8, 8, 2]);
    expect(new Set(made.map((tail) => tail.toHex())).size).toBe(made.length);
  });

  test.each([
    ["the API key", 62, () => newApiKey().slice(7)],
    ["the token", 32, () => newToken(200)],
  ] as const)("every character of %s is as likely as every other", (_, size, make) => {
    const counts = new Map<string, number>();
    const keys = 2500;
    for (let made = 0; made < keys; made++) for (const char of make()) counts.set(char, (counts.get(char) ?? 0) + 1);
    expect(counts.size).toBe(size);
    const expected = (keys * 40) / size;
    // Chi-squared with size - 1 degrees of freedom; eight standard deviations above its mean never happen by chance,
    // while "byte modulo 62" alone would give a value above 4,000.
    const chi2 = [...counts.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
    expect(chi2).toBeLessThan(size - 1 + 8 * Math.sqrt(2 * (size - 1)));
  });
});
