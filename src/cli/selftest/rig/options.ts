import { mkdirSync, mkdtempSync } from "node:fs";
import { join, resolve } from "node:path";
import { StartupError, UsageError } from "../../../domain/errors.ts";
import { messageOf } from "../../../lib/error-message.ts";
import type { Flag } from "../../arguments.ts";

export const seedFlag: Flag = {
  name: "--seed",
  value: "N",
  doc: "Repeats the random choices of a run: timing, payloads, responses.",
};

export const dirFlag = { name: "--dir", value: "DIR" } as const;

const largestSeed = 2 ** 32 - 1;

/** A whole number of at least 1. @throws UsageError */
export function readCount(flags: ReadonlyMap<string, string>, name: string, byDefault: number): number {
  const text = flags.get(name);
  if (text === undefined) return byDefault;
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text);
  throw new UsageError(`${name} must be a whole number from 1 to 9999999, not "${text}". Try: ${name} ${byDefault}`);
}

/** The given seed, or an unpredictable one. @throws UsageError */
export function readSeed(flags: ReadonlyMap<string, string>): number {
  const text = flags.get(seedFlag.name);
  if (text === undefined) return crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
  if (/^\d{1,10}$/.test(text) && Number(text) <= largestSeed) return Number(text);
  throw new UsageError(
    `${seedFlag.name} must be a whole number from 0 to ${largestSeed}, not "${text}". Try: ${seedFlag.name} 1`,
  );
}

/** The value of a required flag. @throws UsageError */
export function requireFlag(
  flags: ReadonlyMap<string, string>,
  { name, value }: Omit<Flag, "doc">,
  example: string,
): string {
  const given = flags.get(name);
  if (given !== undefined && given !== "") return given;
  throw new UsageError(`${name} ${value} is required. Try: ${name} ${example}`);
}

/** A new folder inside the given one. @throws StartupError when none can be created there */
export function makeFolder(parent: string): string {
  try {
    mkdirSync(parent, { recursive: true });
    return mkdtempSync(join(resolve(parent), "postrider-selftest-"));
  } catch (error) {
    const reason = messageOf(error);
    throw new StartupError(
      `No folder can be created in ${parent} (${reason}). Try: ${dirFlag.name} with a folder that this user can write to`,
    );
  }
}
