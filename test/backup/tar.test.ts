import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readTar, type TarEntry, writeTar } from "../../src/backup/tar.ts";

const entry = (name: string, contents: Uint8Array): TarEntry => ({
  name,
  bytes: contents.length,
  chunks: () => [contents],
});
const filled = (bytes: number) => new Uint8Array(bytes).map((_, i) => i % 251);

const archiveOf = (...entries: TarEntry[]): Buffer =>
  Buffer.concat([...writeTar(entries, 1_800_000_000)].map((chunk) => chunk.slice()));

/** What is in an archive that comes in pieces of a size. */
async function read(archive: Uint8Array, pieceBytes = archive.length): Promise<[string, string][]> {
  const found: [string, string][] = [];
  let name = "";
  let hash = createHash("sha256");
  await readTar(
    (async function* () {
      for (let at = 0; at < archive.length; at += pieceBytes) yield archive.subarray(at, at + pieceBytes);
    })(),
    {
      begin(begun) {
        name = begun;
        hash = createHash("sha256");
      },
      take: (chunk) => void hash.update(chunk),
      end: () => void found.push([name, hash.digest("hex")]),
    },
  );
  return found;
}

const hashOf = (contents: Uint8Array) => createHash("sha256").update(contents).digest("hex");

describe("a tar archive", () => {
  const sizes = [0, 1, 511, 512, 513, 70_000];
  const archive = archiveOf(...sizes.map((size) => entry(`${size}.bin`, filled(size))));
  const expected = sizes.map((size): [string, string] => [`${size}.bin`, hashOf(filled(size))]);

  test.each([1, 7, 512, 1000, 1_000_000])("is read as it was written, in pieces of %d bytes", async (pieceBytes) => {
    expect(await read(archive, pieceBytes)).toEqual(expected);
  });

  test("is one for the tar of the system", async () => {
    const listed = Bun.spawn(["tar", "-tvf", "-"], { stdin: archive, stdout: "pipe" });
    const lines = (await new Response(listed.stdout).text()).trim().split("\n");
    expect(await listed.exited).toBe(0);
    expect(lines.map((line) => line.split(/\s+/).at(-1))).toEqual(expected.map(([name]) => name));
    expect(lines.at(-1)).toMatch(/^-rw------- .* 70000 2027-01-15 /);
  });

  test("holds files of 8 GiB and more", async () => {
    const bytes = 9 * 2 ** 30;
    const head = Buffer.concat([...writeTar([{ name: "large", bytes, chunks: () => [] }], 0)].slice(0, 1));
    let told = 0;
    const reading = readTar(
      (async function* () {
        yield head;
      })(),
      {
        begin(_, size) {
          told = size;
        },
        take() {},
        end() {},
      },
    );
    await expect(reading).rejects.toThrow("cut short");
    expect(told).toBe(bytes);
  });

  test.each([
    ["nothing", new Uint8Array(), "cut short"],
    ["cut inside of a file", archive.subarray(0, 60_000), "cut short"],
    ["cut before its end", archive.subarray(0, -1024), "cut short"],
    ["something else", filled(2048), "no tar archive"],
    ["changed in a head", archive.with(3, 65), "no tar archive"],
  ])("%s is refused", async (_, bytes, reason) => {
    await expect(read(bytes)).rejects.toThrow(reason);
  });
});
