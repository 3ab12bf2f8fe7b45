import { describe, expect, test } from "bun:test";
import { checkPassword, createPasswords, generatePassword, type HashedFor } from "../../src/accounts/password.ts";
import { DomainError } from "../../src/domain/errors.ts";

function refusal(password: string, field?: string): DomainError | null {
  try {
    checkPassword(password, field);
  } catch (error) {
    if (error instanceof DomainError) return error;
    throw error;
  }
  return null;
}

describe("the rules for a password", () => {
  test.each([
    ["Abcde1@", "password must have at least 8 characters."],
    ["abcdefg1@", "password must have at least one uppercase letter."],
    ["ABCDEFG1@", "password must have at least one lowercase letter."],
    ["Abcdefgh@", "password must have at least one digit."],
    ["Abcdefgh1", "password must have at least one special character from @ # $ % ^ & + = !."],
    ["Abcdefg1*", "password must have at least one special character from @ # $ % ^ & + = !."],
    ["abcdefgh@", "password must have at least one uppercase letter and at least one digit."],
    [
      "",
      "password must have at least 8 characters, at least one uppercase letter, at least one lowercase letter, " +
        "at least one digit and at least one special character from @ # $ % ^ & + = !.",
    ],
    // Seven characters, though eleven units of UTF-16.
    ["Aa1@😀😀😀", "password must have at least 8 characters."],
  ])("%p: %s", (password, message) => {
    const error = refusal(password);
    expect(error?.message).toBe(message);
    expect(error?.kind).toBe("invalid");
    expect(error?.code).toBe("weak_password");
  });

  test.each(["Abcdef1@", "aB3!aB3!", "Élan vital 1é="])("%p is accepted", (password) => {
    expect(refusal(password)).toBeNull();
  });

  test.each([..."@#$%^&+=!"])("%s is a special character", (special) => {
    expect(refusal(`Abcdef1${special}`)).toBeNull();
  });

  test("1,024 bytes pass and no more, however many characters they are", () => {
    expect(refusal(`Aa1@${"x".repeat(1020)}`)).toBeNull();
    expect(refusal(`Aa1@${"x".repeat(1021)}`)?.message).toBe("password must have at most 1,024 bytes.");
    expect(refusal(`Aa1@${"é".repeat(511)}`)?.message).toBe("password must have at most 1,024 bytes.");
  });

  test("the message names the field and never the password", () => {
    const error = refusal("hunter2", "new_password");
    expect(error?.message).toStartWith("new_password must have ");
    expect(error?.message).not.toContain("hunter2");
  });
});

test("a generated password meets the rules, and no two are alike", () => {
  const passwords = Array.from({ length: 500 }, generatePassword);
  expect(passwords.map((password) => refusal(password)).filter((error) => error !== null)).toEqual([]);
  expect(passwords.every((password) => password.length === 20)).toBe(true);
  expect(new Set(passwords).size).toBe(500);
});

describe("hashes", () => {
  const passwords = createPasswords();

  test("are argon2id with the cost of the decision, and verify", async () => {
    const hash = await passwords.hash("Abcdef1@", {});
    expect(hash).toStartWith("$argon2id$v=19$m=19456,t=2,p=1$");
    expect(await passwords.verify("Abcdef1@", hash, {})).toBe(true);
    expect(await passwords.verify("Abcdef1#", hash, {})).toBe(false);
  });

  test("without a hash nothing verifies", async () => {
    expect(await passwords.verify("Abcdef1@", null, {})).toBe(false);
  });

  test("beyond those that may wait, the answer is `unavailable` instead of a longer queue", async () => {
    const crowded = createPasswords({ maxWaiting: 3 });
    const outcomes = await Promise.allSettled(Array.from({ length: 9 }, () => crowded.verify("Abcdef1@", null, {})));
    const refused = outcomes.filter((outcome) => outcome.status === "rejected");
    // Four run and three wait.
    expect(refused).toHaveLength(2);
    expect(refused.every(({ reason }) => reason instanceof DomainError && reason.kind === "unavailable")).toBe(true);
  });

  test.each([
    ["account from many networks", (n: number) => ({ account: "flooder", address: `2001:db8:${n + 1}::1` })],
    ["network for many accounts", (n: number) => ({ account: `t${n}`, address: `198.51.100.${n}` })],
  ])("for one %s leave the others their turns and places", async (_flood, whose) => {
    const crowded = createPasswords({ maxWaiting: 10 });
    const served: string[] = [];
    const verify = (name: string, hashedFor: HashedFor) =>
      crowded.verify("Abcdef1@", null, hashedFor).then(() => served.push(name));
    // Four run, ten wait, and six find no place.
    const flood = Promise.allSettled(Array.from({ length: 20 }, (_, n) => verify("flood", whose(n))));
    await Promise.all(["ada", "bob", "eve"].map((name, n) => verify(name, { account: name, address: `203.0.${n}.1` })));
    // Those that ran already, and those that ran beside the first of the others. In turn it would come after all 14.
    expect(served.findIndex((name) => name !== "flood")).toBeLessThanOrEqual(4 + 4);
    const refused = (await flood).filter(({ status }) => status === "rejected");
    // Three gave their places to the others.
    expect(refused).toHaveLength(6 + 3);
  });
});
