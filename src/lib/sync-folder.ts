import { closeSync, fsyncSync, openSync } from "node:fs";

/** Makes the names in a folder durable; Windows does so by itself, and cannot open a folder. */
export function syncFolder(path: string): void {
  if (process.platform === "win32") return;
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
