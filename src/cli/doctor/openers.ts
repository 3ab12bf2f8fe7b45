import { readdirSync, readFileSync, readlinkSync, realpathSync } from "node:fs";

/** Which other processes have a file open, as far as the system shows this user: on Linux, the user's own processes. */
export function openersOf(path: string, known: readonly number[]): { pid: number; name: string }[] {
  if (process.platform !== "linux") return [];
  const real = unless(() => realpathSync(path), null);
  if (real === null) return [];
  const pids = unless(() => readdirSync("/proc"), []).filter((name) => /^\d+$/.test(name));
  return pids
    .map(Number)
    .filter((pid) => !known.includes(pid) && hasOpen(pid, real))
    .map((pid) => ({ pid, name: unless(() => readFileSync(`/proc/${pid}/comm`, "utf8").trim(), "a program") }));
}

const hasOpen = (pid: number, path: string): boolean =>
  unless(() => readdirSync(`/proc/${pid}/fd`), []).some(
    (fd) => unless(() => readlinkSync(`/proc/${pid}/fd/${fd}`), "") === path,
  );

/** Falls back when reading fails: a process may belong to another user, or have ended. */
function unless<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
