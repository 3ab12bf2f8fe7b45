import { expect } from "bun:test";
import { loadConfig } from "../../src/config.ts";
import { StartupError } from "../../src/domain/errors.ts";

/** The configuration of a server with this environment and these flags. */
export const load = (env: Record<string, string> = {}, flags: Record<string, string> = {}) =>
  loadConfig(env, new Map(Object.entries(flags)));

/** Why that server does not start. */
export function refusalOf(env: Record<string, string>, flags: Record<string, string> = {}): string {
  try {
    load(env, flags);
  } catch (error) {
    expect(error).toBeInstanceOf(StartupError);
    return (error as StartupError).message;
  }
  throw new Error("the configuration was accepted");
}
