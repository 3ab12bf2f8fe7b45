import { root } from "./lock.ts";

/** The commit that a build is made from. */
export interface Origin {
  /** Twelve digits; with `-modified` if the files are not those of the commit, and "unknown" outside of a clone. */
  readonly commit: string;
  /** When it was committed, in UTC, or "unknown": the time of the build would make every build another one. */
  readonly committedAt: string;
}

export function originOf(folder = root): Origin {
  const commit = git(folder, "rev-parse", "--short=12", "HEAD");
  const seconds = Number(git(folder, "log", "-1", "--format=%ct"));
  if (commit === null || !(seconds > 0)) return { commit: "unknown", committedAt: "unknown" };
  const isModified = git(folder, "status", "--porcelain") !== "";
  return {
    commit: isModified ? `${commit}-modified` : commit,
    committedAt: new Date(seconds * 1000).toISOString().replace(".000Z", "Z"),
  };
}

/** Null where there is no git or no clone. */
function git(folder: string, ...args: string[]): string | null {
  try {
    const { exitCode, stdout } = Bun.spawnSync(["git", ...args], { cwd: folder, stderr: "ignore" });
    return exitCode === 0 ? stdout.toString().trim() : null;
  } catch {
    return null;
  }
}
