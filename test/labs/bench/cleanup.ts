import { rmSync } from "node:fs";
import type { Subprocess } from "bun";

/**
 * What must not outlive the bench, however it ends: processes and temporary folders. Only `kill -9` gets past it, and the
 * relays of this folder end then by themselves, because their standard input ends.
 */
const children = new Set<Subprocess>();
const folders = new Set<string>();
const others: (() => void)[] = [];

export function endWithUs(child: Subprocess): void {
  children.add(child);
  void child.exited.then(() => children.delete(child));
}

export function removeAtEnd(folder: string): void {
  folders.add(folder);
}

/** After the children were killed. */
export function endAtExit(clean: () => void): void {
  others.push(clean);
}

export function installCleanup(): void {
  process.on("exit", () => {
    for (const child of children) child.kill("SIGKILL");
    for (const clean of others) clean();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    process.on(signal, () => process.exit(code));
  }
}
