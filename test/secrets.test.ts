import { expect, test } from "bun:test";
import { secretsBetween } from "../src/data-dir-copy.ts";
import { asOthersHave, deriveSecret, outlivingSecrets, sharedSecretsFrom } from "../src/secrets.ts";

const [first, second] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];

/** What is derived where the first key's secrets are kept. */
const kept = outlivingSecrets(first, true);
const secretFor = (purpose: string) => {
  const found = kept[purpose];
  return found === undefined ? deriveSecret(second, purpose) : Buffer.from(found, "hex");
};

test("a server that joins after the master key was replaced has the secrets of the others", () => {
  const made = { masterKey: second, ...sharedSecretsFrom(second) };
  expect(asOthersHave(made, secretFor)).toEqual(sharedSecretsFrom(first));
  const given = { masterKey: second, sessionSecret: "from a file", operatorToken: "rotated" };
  expect(asOthersHave(given, secretFor)).toEqual({ sessionSecret: "from a file", operatorToken: "rotated" });
});

const file = (name: string, text: string) => ({ name, contents: Buffer.from(text) });
const session = file("session-secret", "s");
const named = (files: ReturnType<typeof secretsBetween>) =>
  Object.fromEntries(files.map(({ name, contents }) => [name, Buffer.from(contents).toString()]));

test.each([
  ["no rotation", [file("master-key", "old")], [file("master-key", "old")], { "master-key": "old" }],
  [
    "one that has just begun",
    [file("master-key", "old")],
    [file("master-key", "old"), file("master-key.next", "new")],
    { "master-key": "old", "master-key.next": "new" },
  ],
  [
    "one that has come and gone between the looks",
    [file("master-key", "old"), file("master-key.next", "new")],
    [file("master-key", "new")],
    { "master-key": "old", "master-key.next": "new" },
  ],
  ["one that had ended", [file("master-key", "new")], [file("master-key", "new")], { "master-key": "new" }],
])("a backup has every key that its database may be sealed with: %s", (_, before, after, expected) => {
  expect(named(secretsBetween([...before, session], [...after, session]))).toEqual({
    ...expected,
    "session-secret": "s",
  });
});
