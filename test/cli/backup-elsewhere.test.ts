import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { generateHybridIdentity, generateX25519Identity, identityToRecipient } from "age-encryption";
import { isEncrypted } from "../../src/backup/encryption.ts";
import { locate } from "../../src/backup/locate.ts";
import { readS3Access } from "../../src/backup-settings.ts";
import { runCommand } from "../../src/cli/run.ts";
import { type BackedUp, createBackedUp } from "../support/backed-up.ts";
import { rowsOf } from "../support/filled-folder.ts";
import { startS3Server, startStuckS3Server } from "../support/s3-server.ts";
import { createScriptedIo } from "../support/scripted-io.ts";

let world: BackedUp;
let s3: Awaited<ReturnType<typeof startS3Server>>;
beforeAll(async () => {
  world = await createBackedUp();
  s3 = await startS3Server();
});
afterAll(async () => {
  await s3.stop();
  world.remove();
});

async function newKey(generate: () => Promise<string>, name: string) {
  const identity = await generate();
  const file = join(world.folder, `${name}.txt`);
  writeFileSync(file, `# created: today\n${identity}\n`);
  return { file, env: { POSTRIDER_BACKUP_AGE_RECIPIENT: await identityToRecipient(identity) } };
}

describe("a backup in S3", () => {
  test("is put there whole, verified, and restored as the newest one", async () => {
    const env = { ...s3.env, POSTRIDER_BACKUP_URL: "s3://backups/of/relay" };
    const made = await world.run(["backup", "--verify"], env);
    expect(made).toMatchObject({ code: 0, err: "" });
    expect(made.out).toMatch(
      /^s3:\/\/backups\/of\/relay\/postrider-\S+\.tar\.zst: .*\nIt was read back and verified\.$/,
    );
    // Nothing stays of its way there.
    expect(readdirSync(world.dataDir).filter((name) => name.includes("unfinished"))).toEqual([]);
    const restored = join(world.folder, "restored");
    const { code, err } = await world.run(["restore", "s3://backups/of/relay", "--data-dir", restored], env);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(rowsOf(restored)).toEqual(rowsOf(world.dataDir));
  });

  test("has the name that it is given, and parts if it is large", async () => {
    const named = "s3://backups/named.tar.zst";
    expect(await world.backUp(named, s3.env)).toBe(named);
    expect((await world.run(["backup", "verify", named], s3.env)).out).toContain("is whole");
    const { place } = locate("s3://backups/large/", {
      s3: readS3Access(s3.env),
      staging: world.folder,
      leaveFreeBytes: 0,
    });
    const part = new Uint8Array(2 ** 20).map((_, i) => i % 253);
    const bytes = await place.put(
      "x.tar.zst",
      (async function* () {
        for (let n = 0; n < 18; n++) yield part;
      })(),
      new AbortController().signal,
    );
    expect(bytes).toBe(18 * 2 ** 20);
    let read = 0;
    for await (const chunk of place.read("x.tar.zst")) read += chunk.length;
    expect(read).toBe(bytes);
  });

  test("is listed with all others, newest first, and removed by its name", async () => {
    const { place } = locate("s3://backups/many/", {
      s3: readS3Access(s3.env),
      staging: world.folder,
      leaveFreeBytes: 0,
    });
    const names = Array.from(
      { length: 12 },
      (_, n) => `postrider-20260101T000000.${String(n).padStart(3, "0")}Z.tar.zst`,
    );
    await Promise.all([...names, "something-else"].map((name) => s3.client.write(`many/${name}`, "x")));
    expect((await place.list(Date.now())).map(({ name }) => name)).toEqual([...names].reverse());
    await place.remove(names[0] ?? "");
    expect(await place.list(Date.now())).toHaveLength(11);
  });

  test.each([
    ["s3://backups/x", { AWS_SECRET_ACCESS_KEY: "wrong" }, "the key is wrong"],
    ["s3://backups/x", { AWS_ACCESS_KEY_ID: "nobody" }, "the key is not known there"],
    ["s3://backups/x", { AWS_ACCESS_KEY_ID: "" }, "needs a key"],
    ["s3://nowhere/x", {}, "there is no such bucket"],
    ["s3://backups/x", { AWS_ENDPOINT_URL_S3: "http://127.0.0.1:1" }, "cannot be reached"],
  ])("%s with %j says what to do", async (to, env: Record<string, string>, said) => {
    for (const command of [
      ["backup", to],
      ["restore", to, "--data-dir", join(world.folder, "not-made")],
    ]) {
      const { code, err } = await world.run(command, { ...s3.env, ...env });
      expect(code).toBe(1);
      expect(err).toContain(said);
      expect(err).toContain("Try: ");
    }
    expect(readdirSync(world.dataDir).filter((name) => name.includes("unfinished"))).toEqual([]);
    expect(readdirSync(world.folder)).not.toContain("not-made");
  });

  test.each([
    ["is being written", ["backup", "s3://backups/x"], "The backup was stopped. Nothing was kept."],
    ["is being verified", ["backup", "verify", "s3://backups/x.tar.zst"], ""],
    [
      "is being restored",
      ["restore", "s3://backups/x.tar.zst", "--data-dir", "NEW"],
      "The restore was stopped. Nothing was restored.",
    ],
  ])("that %s, where nothing answers, is stopped at once and leaves nothing", async (_, words, said) => {
    const stuck = startStuckS3Server();
    const target = join(world.folder, "never-made");
    const { io, err, interrupt } = createScriptedIo({ env: { POSTRIDER_DATA_DIR: world.dataDir, ...stuck.env } });
    const args = words.map((word) => (word === "NEW" ? target : word));
    const verifying = ["--dir", world.dataDir];
    const ended = runCommand(args[1] === "verify" ? [...args, ...verifying] : args, io);
    await stuck.asked;
    interrupt();
    expect(await ended).toBe(130);
    expect(err.join()).toBe(said);
    expect(readdirSync(world.dataDir).filter((name) => /unfinished|verify/.test(name))).toEqual([]);
    expect(existsSync(target)).toBe(false);
    await stuck.stop();
  });

  test("that is not there is named", async () => {
    expect((await world.run(["backup", "verify", "s3://backups/none.tar.zst"], s3.env)).err).toContain(
      "no such backup",
    );
    expect((await world.run(["backup", "verify", "s3://backups/none"], s3.env)).err).toContain("There is no backup in");
  });
});

describe("an encrypted backup", () => {
  test.each([
    ["X25519", generateX25519Identity],
    ["hybrid", generateHybridIdentity],
  ])("to a key of the kind %s is read with its identity and without it never", async (kind, generate) => {
    const key = await newKey(generate, kind);
    const other = await newKey(generate, `other-${kind}`);
    const folder = join(world.folder, kind);
    // Whoever makes it can verify it without the identity.
    const made = await world.run(["backup", `${folder}/`, "--verify"], key.env);
    expect(made.out).toContain("It was read back and verified.");
    const [name = ""] = readdirSync(folder);
    expect(name).toEndWith(".tar.zst.age");
    expect(isEncrypted(readFileSync(join(folder, name)))).toBe(true);

    expect((await world.run(["backup", "verify", folder, "--identity", key.file])).out).toContain("is whole");
    expect((await world.run(["backup", "verify", folder])).err).toContain("is encrypted. Try: --identity");
    const wrong = await world.run(["backup", "verify", folder, "--identity", other.file]);
    expect(wrong.err).toContain("cannot be decrypted with that identity");
    const restored = join(world.folder, `restored-${kind}`);
    const { code } = await world.run(["restore", folder, "--data-dir", restored, "--identity", key.file]);
    expect(code).toBe(0);
    expect(rowsOf(restored)).toEqual(rowsOf(world.dataDir));
  });

  test("that has changed, or is cut short, is found out", async () => {
    const key = await newKey(generateX25519Identity, "changed");
    const file = join(world.folder, "changed.tar.zst.age");
    await world.backUp(file, key.env);
    const bytes = readFileSync(file);
    for (const changed of [bytes.with(bytes.length - 100, (bytes.at(-100) ?? 0) ^ 1), bytes.subarray(0, -50)]) {
      writeFileSync(file, changed);
      const { code, err } = await world.run(["backup", "verify", file, "--identity", key.file]);
      expect(code).toBe(1);
      expect(err).toContain("is not a complete backup: it is damaged or cut short. Try: another backup.");
    }
    writeFileSync(key.file, "no identity");
    const { err } = await world.run(["backup", "verify", file, "--identity", key.file]);
    expect(err).toContain("is not an age identity file");
  });
});
