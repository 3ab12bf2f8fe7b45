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
  const rotated = (activatesAt: number, ...keys: { activatesAt: number; retiresAt: number | null }[]) =>
    rotateSigningKeys(
      keys.map((key, index) => ({ key: index + 1, ...key })),
      { activatesAt, othersRetireAt: overlapEndsAt, now },
    );

  test.each<[string, { activatesAt: number; retiresAt: number | null }, object]>([
    ["retires the one that signs", { activatesAt: 0, retiresAt: null }, { ends: [1], forgets: [] }],
    ["retires one sooner that was to be published longer", { activatesAt: 0, retiresAt: 20_001 }, { ends: [1] }],
    ["leaves one that retires before", { activatesAt: 0, retiresAt: 15_000 }, { ends: [], forgets: [] }],
    ["retires one that takes over at the same time", { activatesAt: 12_000, retiresAt: null }, { ends: [1] }],
    ["forgets one that was to take over later", { activatesAt: 12_001, retiresAt: null }, { ends: [], forgets: [1] }],
  ])("%s", (_, key, rotation) => {
    expect(rotated(12_000, key)).toMatchObject({ kind: "rotated", ...rotation });
  });

  test("that takes over at once leaves what takes over by now", () => {
    expect(rotated(0, { activatesAt: now, retiresAt: null })).toMatchObject({ ends: [1], forgets: [] });
  });

  const published = (count: number, retiresAt: number | null) =>
    Array.from({ length: count }, () => ({ activatesAt: 0, retiresAt }));

  test.each<[string, ReturnType<typeof published>, number | undefined]>([
    ["99 are published", published(99, 15_000), undefined],
    ["100 are, the first until 14 s", [...published(99, 15_000), { activatesAt: 0, retiresAt: 14_000 }], 4],
    ["100 are, and none retires", published(100, null), 10],
    ["100 were, and one has retired", [...published(99, 15_000), { activatesAt: 0, retiresAt: now }], undefined],
    ["one of 100 takes over later", [...published(99, 15_000), { activatesAt: 12_001, retiresAt: null }], undefined],
  ])("while %s waits as long as it must", (_, keys, retryAfterSeconds) => {
    const rotation = rotated(12_000, ...keys);
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
