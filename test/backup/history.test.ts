import { describe, expect, test } from "bun:test";
import {
  type BackupOutcome,
  forget,
  makes,
  newestWholeAt,
  parseHistory,
  remember,
  toRemove,
} from "../../src/backup/history.ts";
import { backupName, newestFirst, timeInName } from "../../src/backup/place.ts";

const day = 86_400_000;
const at = (n: number) => Date.UTC(2026, 0, 1) + n * day;
const named = (n: number) => backupName(at(n), false);

describe("what makes room", () => {
  // Newest first: w is known to be whole, x is known not to be, ? has been looked at by nobody.
  test.each([
    ["wwwww", 3, "www--"],
    ["wwwww", null, "wwwww"],
    ["ww", 3, "ww"],
    ["xxxxww", 3, "xxx-w-"],
    ["xxxx", 3, "xxxx"],
    ["?????", 3, "?????"],
    ["w????", 2, "w?---"],
    ["?w???", 1, "?w---"],
    ["x?w", 1, "x-w"],
    ["", 3, ""],
  ])("of %s, with %p kept", (known, keep, left) => {
    const stored = [...known].map((_, i) => ({ name: named(100 - i), bytes: 1, createdAt: at(100 - i) }));
    const verified = Object.fromEntries(
      [...known].flatMap((mark, i) => (mark === "?" ? [] : [[named(100 - i), mark === "w"]])),
    );
    const made = stored.map(({ name }) => name);
    const removed = toRemove(stored, keep, { verified, made }, made[0] ?? "");
    const expected = [...left].flatMap((mark, i) => (mark === "-" ? [named(100 - i)] : []));
    expect(removed).toEqual(expected);
    expect(toRemove(stored, keep, { verified, made: made.slice(0, 1) }, made[0] ?? "")).toEqual([]);
  });
});

describe("what is remembered", () => {
  const outcome = (n: number, given: Partial<BackupOutcome> = {}): BackupOutcome => ({
    ...{ kind: "backup", name: named(n), at: at(n), tookMs: 5, bytes: 7, error: null },
    ...given,
  });

  test("is the latest, which of them are whole, and when the newest of those was made", () => {
    let history = remember(parseHistory(null), outcome(1), true);
    history = remember(history, outcome(2, { error: "a fault" }), false);
    expect(history).toMatchObject({ verified: { [named(1)]: true, [named(2)]: false } });
    expect(newestWholeAt(history, at(3))).toBe(at(1));
    // One that was not made at all, and an older one that somebody has looked at again.
    history = remember(history, outcome(3, { name: null, error: "no room" }), null);
    history = remember(history, outcome(0, { kind: "verify" }), true);
    expect(newestWholeAt(history, at(3))).toBe(at(1));
    expect(history.latest?.kind).toBe("verify");
    expect(history.latestBackup?.error).toBe("no room");
    expect(parseHistory(JSON.stringify(history))).toEqual(history);
    const stored = [{ name: named(1), bytes: 1, createdAt: at(1) }];
    expect(forget(history, history, stored).verified).toEqual({ [named(1)]: true });
    expect(forget(makes(makes(history, named(1)), named(2)), history, stored).made).toEqual([named(1)]);
  });

  test("outlasts a list that was asked for before the backup was there", () => {
    const before = makes(parseHistory(null), named(1));
    const after = remember(before, outcome(1), true);
    for (const history of [before, after]) expect(forget(history, before, [])).toEqual(history);
    expect(forget(after, after, [])).toMatchObject({ verified: {}, made: [] });
  });

  test("of backups that came to nothing are the latest 100 names, and those of the others", () => {
    let history = remember(makes(parseHistory(null), named(0)), outcome(0), true);
    for (let n = 1; n <= 150; n++) history = makes(history, named(n));
    expect(history.made).toEqual([named(0), ...Array.from({ length: 100 }, (_, i) => named(51 + i))]);
  });

  test("by an earlier release is what it verified: it made those", () => {
    const { made: _, ...earlier } = remember(parseHistory(null), outcome(1), true);
    expect(parseHistory(JSON.stringify(earlier)).made).toEqual([named(1)]);
  });

  test("is nothing of backups made while the clock was ahead", () => {
    let history = remember(parseHistory(null), outcome(9), true);
    expect(newestWholeAt(history, at(2))).toBeNull();
    history = remember(history, outcome(2), true);
    expect(newestWholeAt(history, at(2))).toBe(at(2));
    expect(newestWholeAt(history, at(9))).toBe(at(9));
  });

  test.each([null, "", "{}", "[1]", '{"latest":{"kind":"other"}}'])("begins anew with %j", (text) => {
    expect(parseHistory(text)).toMatchObject({ latest: null, verified: {} });
  });
});

describe("the name of a backup", () => {
  test.each([false, true])("tells when it was made, encrypted: %p", (isEncrypted) => {
    const name = backupName(at(3) + 1_234, isEncrypted);
    expect(name).toMatch(isEncrypted ? /^postrider-20260104T000001\.234Z\.tar\.zst\.age$/ : /Z\.tar\.zst$/);
    expect(timeInName(name)).toBe(at(3) + 1_234);
  });

  test.each([
    "postrider.tar.zst",
    "x-postrider-20260104T000001.234Z.tar.zst",
    "postrider-20269904T000001.234Z.tar.zst",
    "../x",
  ])("is not %s", (name) => expect(timeInName(name)).toBeNull());

  test("sorts by time", () => {
    const stored = [2, 9, 1].map((n) => ({ name: named(n), bytes: 1, createdAt: at(n) }));
    const sorted = (now: number) => newestFirst(stored, now).map(({ name }) => name);
    expect(sorted(at(9))).toEqual([9, 2, 1].map(named));
    // The clock was ahead when the ninth was made.
    expect(sorted(at(2))).toEqual([2, 1, 9].map(named));
    expect(sorted(at(0))).toEqual([9, 2, 1].map(named));
  });
});
