import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { secretsBetween, secretsIn } from "../src/data-dir-copy.ts";
import { asOthersHave, deriveSecret, movingSecrets, outlivingSecrets, sharedSecretsFrom } from "../src/secrets.ts";

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

test("a server that joins after a move has the secrets of the one whose data was moved", () => {
  const own = { sessionSecret: "0123456789abcdef".repeat(4), operatorToken: `svc_op_${"456789abcdef".repeat(4)}` };
  const { moving, staying } = movingSecrets(own);
  expect(staying).toEqual([]);
  const joining = { masterKey: first, ...sharedSecretsFrom(first) };
  expect(asOthersHave(joining, (purpose) => Buffer.from(moving[purpose] ?? "", "hex"))).toEqual(own);
});

test.each([
  ["a word", "session-secret", { sessionSecret: "a word", operatorToken: `svc_op_${"0".repeat(48)}` }],
  ["another form", "operator-token", { sessionSecret: "0".repeat(64), operatorToken: "0".repeat(48) }],
  ["too short", "operator-token", { sessionSecret: "0".repeat(64), operatorToken: "svc_op_00" }],
])("a move cannot pass on a secret that somebody wrote: %s", (_, name, own) => {
  const { moving, staying } = movingSecrets(own);
  expect(staying).toEqual([name]);
  expect(Object.keys(moving)).toHaveLength(1);
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

// A pipe that gives the key shows when the key is read: whoever opens it to write waits for that.
test.skipIf(process.platform === "win32")(
  "a key that takes the old one's place between two reads is in the backup",
  () => {
    const folder = mkdtempSync(join(tmpdir(), "postrider-secrets-"));
    try {
      writeFileSync(join(folder, "master-key.next"), "new");
      Bun.spawnSync(["mkfifo", "master-key"], { cwd: folder });
      const before = [file("master-key", "old"), file("master-key.next", "new")];
      // The old key was read just before the new one was given its name.
      Bun.spawn(["sh", "-c", "exec 3> master-key; rm master-key.next; printf old >&3"], { cwd: folder });
      expect(named(secretsBetween(before, secretsIn(folder, false)))).toEqual({
        ...{ "master-key": "old", "master-key.next": "new" },
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);
