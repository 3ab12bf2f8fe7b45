import { describe, expect, test } from "bun:test";
import {
  isPublished,
  isSigning,
  rotateApiKeys,
  rotateSigningKeys,
  rotateSigningSecrets,
} from "../../src/domain/rotation.ts";

const now = 10_000;
const overlapEndsAt = 20_000;

describe("a new API key", () => {
  test.each<[string, number | null, number[]]>([
    ["has no end", null, [1]],
    ["would end later", overlapEndsAt + 1, [1]],
    ["ends with the overlap", overlapEndsAt, []],
    ["ends sooner", now, []],
  ])("lets one before it that %s end with the overlap: %j", (_, expiresAt, ends) => {
    expect(rotateApiKeys([{ key: 1, expiresAt }], overlapEndsAt)).toEqual({ ends, forgets: [] });
  });

  test.each([
    [999, []],
    [1_000, [1]],
    [1_002, [3, 2, 1]],
  ])("beside %i others forgets %j, the oldest", (others, forgets) => {
    const keys = Array.from({ length: others }, (_, index) => ({ key: others - index, expiresAt: null }));
    const rotation = rotateApiKeys(keys, overlapEndsAt);
    expect(rotation.forgets).toEqual(forgets);
    expect(rotation.ends.length).toBe(999);
  });
});

describe("a new signing key", () => {
  const rotated = (...retireAt: (number | null)[]) =>
    rotateSigningKeys(
      retireAt.map((retiresAt, index) => ({ key: index + 1, retiresAt })),
      { othersRetireAt: overlapEndsAt, now },
    );

  test.each<[string, number | null, number[]]>([
    ["retires the one that signs, and those whose time has not come", null, [1]],
    ["retires one sooner that was to be published longer", 20_001, [1]],
    ["leaves one that retires before", 15_000, []],
  ])("%s", (_, retiresAt, ends) => {
    expect(rotated(retiresAt)).toEqual({ kind: "rotated", ends });
  });

  const published = (count: number, retiresAt: number | null) => Array<number | null>(count).fill(retiresAt);

  test.each<[string, (number | null)[], number | undefined]>([
    ["99 are published", published(99, 15_000), undefined],
    ["100 are, the first until 14 s", [...published(99, 15_000), 14_000], 4],
    ["100 are, and none retires", published(100, null), 10],
    ["100 were, and one has retired", [...published(99, 15_000), now], undefined],
  ])("while %s waits as long as it must", (_, keys, retryAfterSeconds) => {
    const rotation = rotated(...keys);
    const error = rotation.kind === "refused" ? rotation.error : undefined;
    expect<unknown>([error?.code, error?.retryAfterSeconds]).toEqual([
      retryAfterSeconds && "too_many_signing_keys",
      retryAfterSeconds,
    ]);
  });
});

test.each([
  [null, true],
  [now + 1, true],
  [now, false],
  [now - 1, false],
])("what ends at %p still counts now: %p", (end, counts) => {
  expect([isPublished({ retiresAt: end }, now), isSigning({ expiresAt: end }, now)]).toEqual([counts, counts]);
});

test.each<[string, { key: number; expiresAt: number | null }[], object]>([
  ["lets the one before it sign until the overlap ends", [{ key: 1, expiresAt: null }], { ends: [1], forgets: [] }],
  [
    "forgets earlier ones: at most two sign",
    [
      { key: 2, expiresAt: null },
      { key: 1, expiresAt: 15_000 },
    ],
    { ends: [2], forgets: [1] },
  ],
])("a new signing secret %s", (_, secrets, rotation) => {
  expect(rotateSigningSecrets(secrets)).toEqual(rotation as never);
});
