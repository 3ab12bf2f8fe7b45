import { existsSync } from "node:fs";
import type { Unpacked } from "../../backup/unpack.ts";
import { formerKeyFileOf } from "../../master-key-file.ts";
import { wrongKey } from "../../store/backup/check.ts";

export const faultsText = (from: string, faults: readonly string[], instead = "an earlier backup"): string =>
  [
    `${from} cannot be relied on:`,
    ...faults.map((fault) => `  ${fault}`),
    `Try: ${instead}, and make a new one soon.`,
  ].join("\n");

/**
 * A backup without a master key of its own, in which nothing is wrong but the key that was tried: it may be from before a rotation.
 * @param isFormerTried the key from before the last rotation does not open it either
 * @returns a sentence with what to do; null when there is more to it
 */
export function notOpened(
  from: string,
  { faults, manifest }: Pick<Unpacked, "faults" | "manifest">,
  masterKeyFile: string | null,
  isFormerTried: boolean,
): string | null {
  if (masterKeyFile === null || manifest.hasMasterKey || faults.some((fault) => fault !== wrongKey)) return null;
  const former = formerKeyFileOf(masterKeyFile);
  const remedy =
    !isFormerTried && existsSync(former)
      ? `POSTRIDER_MASTER_KEY_FILE=${former}, the key from before the last rotation.`
      : "POSTRIDER_MASTER_KEY_FILE with the key that the server had when the backup was made.";
  return `${from} does not open with ${masterKeyFile}, and its own master key was kept elsewhere. Try: ${remedy}`;
}
