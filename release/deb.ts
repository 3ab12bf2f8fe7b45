import { createHash } from "node:crypto";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { version } from "../src/version.ts";
import { ownFile, type Papers } from "./papers.ts";
import { type Entry, withFolders, writeTar } from "./tar.ts";

/**
 * A package for Debian and what comes from it, written here because not every machine that builds has dpkg-deb: an `ar` archive
 * of a version, the control files and the files (deb(5)). Packed by gzip, which every dpkg reads.
 */

const pack = promisify(gzip);
const packed = (bytes: Uint8Array) => pack(bytes, { level: 9 });
const own = (name: string) => ownFile(join("release", "debian", name));

/** `1.0.0-rc.1` is before `1.0.0` there, too. */
export const debianVersion = (of = version) => `${of.replace("-", "~")}-1`;

export const debName = (architecture: string) => `postrider_${debianVersion()}_${architecture}.deb`;

const maintainer = "The Postrider authors <postrider@localhost.localdomain>";
const configuration = "etc/postrider/postrider.env";

export async function writeDeb(architecture: string, executable: Uint8Array, papers: Papers, at: Date) {
  const files = await filesOf(executable, papers, at);
  const bytes = files.reduce((sum, file) => sum + file.bytes.length, 0);
  const control: Entry[] = [
    { path: "control", bytes: Buffer.from(controlOf(architecture, Math.ceil(bytes / 1024))) },
    { path: "conffiles", bytes: Buffer.from(`/${configuration}\n`) },
    {
      path: "md5sums",
      bytes: Buffer.from(
        files
          .filter(({ path }) => path !== configuration)
          .map(md5Line)
          .join(""),
      ),
    },
    ...["postinst", "prerm", "postrm"].map((path) => ({ path, bytes: own(path), mode: 0o755 })),
  ];
  const below = (entries: readonly Entry[]) => entries.map((entry) => ({ ...entry, path: `./${entry.path}` }));
  return writeAr(
    [
      ["debian-binary", Buffer.from("2.0\n")],
      ["control.tar.gz", await packed(writeTar([{ path: "./", bytes: Buffer.alloc(0) }, ...below(control)], at))],
      ["data.tar.gz", await packed(writeTar(withFolders(below(files)), at))],
    ],
    at,
  );
}

async function filesOf(executable: Uint8Array, papers: Papers, at: Date): Promise<Entry[]> {
  const documents = "usr/share/doc/postrider";
  return [
    { path: "usr/bin/postrider", bytes: executable, mode: 0o755 },
    { path: "usr/lib/systemd/system/postrider.service", bytes: own("postrider.service") },
    // It may come to hold what others should not read.
    { path: configuration, bytes: own("postrider.env"), mode: 0o600 },
    { path: "usr/share/man/man1/postrider.1.gz", bytes: await packed(papers.manual) },
    { path: "usr/share/bash-completion/completions/postrider", bytes: papers.bash },
    { path: "usr/share/zsh/vendor-completions/_postrider", bytes: papers.zsh },
    { path: "usr/share/fish/vendor_completions.d/postrider.fish", bytes: papers.fish },
    { path: `${documents}/copyright`, bytes: papers.licences },
    { path: `${documents}/changelog.gz`, bytes: await packed(ownFile("CHANGELOG.md")) },
    { path: `${documents}/changelog.Debian.gz`, bytes: await packed(Buffer.from(changelog(at))) },
    { path: "usr/share/lintian/overrides/postrider", bytes: own("lintian-overrides") },
  ];
}

const controlOf = (architecture: string, kibibytes: number) => `Package: postrider
Version: ${debianVersion()}
Architecture: ${architecture}
Maintainer: ${maintainer}
Installed-Size: ${kibibytes}
Depends: adduser, init-system-helpers (>= 1.52), libc6 (>= 2.17)
Section: net
Priority: optional
Description: multi-tenant webhook relay with stored history
 Accepts events over HTTP, stores them on disk before it answers, and delivers
 them to webhooks: signed, retried, at least once. Every delivery can be
 listed, inspected and sent again, in a dashboard and by an API.
 .
 This package runs it as a service, on this machine's own address until it is
 told otherwise in /etc/postrider/postrider.env.
`;

const changelog = (at: Date) => `postrider (${debianVersion()}) stable; urgency=medium

  * ${version}; what is new is in changelog.gz.

 -- ${maintainer}  ${at.toUTCString().replace("GMT", "+0000")}
`;

const md5Line = ({ path, bytes }: Entry) => `${createHash("md5").update(bytes).digest("hex")}  ${path}\n`;

function writeAr(members: readonly (readonly [name: string, bytes: Uint8Array])[], at: Date): Uint8Array {
  const seconds = String(Math.floor(at.getTime() / 1000));
  const parts = members.flatMap(([name, bytes]) => [
    Buffer.from(
      `${name.padEnd(16)}${seconds.padEnd(12)}${"0".padEnd(6)}${"0".padEnd(6)}${"100644".padEnd(8)}${String(bytes.length).padEnd(10)}\`\n`,
    ),
    bytes,
    Buffer.from(bytes.length % 2 === 0 ? "" : "\n"),
  ]);
  return Buffer.concat([Buffer.from("!<arch>\n"), ...parts]);
}
