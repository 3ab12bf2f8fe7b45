import { existsSync } from "node:fs";
import { join } from "node:path";

/** The root file system of the image, with a way to run its executable there as a container would. */
export interface Image {
  /** The command line of one that is run inside. */
  inside(words: readonly string[]): string[];
}

/** What a container is given: `/proc`, a few devices, its name for itself, a user and nothing else. The mounts end with the process. */
const enter = `set -eu
root=$1; shift
mkdir -p "$root/proc" "$root/dev"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/dev"
for name in null zero random urandom; do : > "$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
echo '127.0.0.1 localhost' > "$root/etc/hosts"
exec chroot --userspec=65532:65532 --groups= "$root" /usr/local/bin/postrider "$@"`;

/** Null where it cannot be entered, which takes root, or where the C library is not where Debian has it. */
export function layOutImage(executable: string, folder: string): Image | null {
  const architecture = process.arch === "x64" ? "amd64" : "arm64";
  if (process.platform !== "linux" || process.getuid?.() !== 0 || !existsSync("/usr/share/doc/libc6/copyright"))
    return null;
  const root = join(folder, "root");
  const script = join(import.meta.dir, "../../release/image.sh");
  const { success, stderr } = Bun.spawnSync(["sh", script, root, architecture, executable, "/"]);
  if (!success) throw new Error(`image.sh: ${stderr}`);
  const inside = (words: readonly string[]) => [
    "unshare",
    "--mount",
    "--propagation",
    "private",
    "sh",
    "-c",
    enter,
    "sh",
    root,
    ...words,
  ];
  return Bun.spawnSync(inside(["version"]), { stderr: "ignore" }).success ? { inside } : null;
}
