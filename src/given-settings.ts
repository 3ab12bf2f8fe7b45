import { StartupError, UsageError } from "./domain/errors.ts";
import { shellWord } from "./lib/shell-word.ts";
import { readGiven } from "./private-files.ts";
import type { Optional, Setting } from "./setting-forms.ts";

/** Where the value of a setting comes from; later ones override earlier ones. */
export type Source = "default" | "environment" | "file" | "flag";

export interface Given {
  /** The parsed value. */
  readonly value: unknown;
  /** The text as written. */
  readonly text: string;
  readonly source: Source;
  /** The variable or the flag; null: the default. */
  readonly name: string | null;
  /** The file that contains it. */
  readonly file: string | null;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The variable that names a file with the value, as container platforms hand over secrets; null: this setting has none.
 * Every setting that is secret or an address has one.
 */
export const fileVariable = ({ env, isSecret, isUrl }: Pick<Setting<unknown>, "env" | "isSecret" | "isUrl">) =>
  isSecret || isUrl ? `${env}_FILE` : null;

/** All ways to set a setting, as help and documents show them. */
export const namesOf = (setting: Pick<Setting<unknown>, "env" | "isSecret" | "isUrl" | "flag">): string[] => [
  setting.env,
  ...(fileVariable(setting) === null ? [] : ["…_FILE"]),
  ...(setting.flag === undefined ? [] : [setting.flag]),
];

/** The environment variables of a setting. */
export const variablesOf = (setting: Pick<Setting<unknown>, "env" | "isSecret" | "isUrl">): string[] => {
  const inFile = fileVariable(setting);
  return inFile === null ? [setting.env] : [setting.env, inFile];
};

/**
 * Reads one setting: the default, then the environment or the file that it names, then the flag.
 *
 * @param warn called for a file that others can read, if we cannot change that
 * @throws StartupError with one line that names the setting and shows a valid value; UsageError if it was a flag
 */
export function give(
  setting: Setting<unknown>,
  env: Environment,
  flags: ReadonlyMap<string, string>,
  warn: (message: string) => void,
): Given {
  const flag = setting.flag === undefined ? undefined : flags.get(setting.flag);
  if (flag !== undefined)
    return parsed(setting, { text: flag, source: "flag", name: setting.flag ?? null, file: null });
  const inFile = fileVariable(setting);
  const file = (inFile && env[inFile]) || null;
  const text = env[setting.env];
  if (inFile !== null && file !== null) {
    if (text) throw new StartupError(`${setting.env} and ${inFile} are both set. Try: remove one of the two.`);
    return parsed(setting, { text: contentOf(setting, inFile, file, warn), source: "file", name: inFile, file });
  }
  if (text === undefined) return parsed(setting, { text: setting.default, source: "default", name: null, file });
  return parsed(setting, { text, source: "environment", name: setting.env, file });
}

function contentOf(setting: Setting<unknown>, name: string, file: string, warn: (message: string) => void): string {
  // Editors and `echo` add a newline, and no value ends with one.
  const text = readGiven({ name, path: file, isSecret: setting.isSecret === true, warn }).replace(/[\r\n]+$/, "");
  if (text !== "") return text;
  throw new StartupError(
    `${name} names a file that is empty: ${file}. Try: write the value of ${setting.env} into it.`,
  );
}

function parsed(setting: Setting<unknown>, given: Omit<Given, "value">): Given {
  const value = setting.parse(given.text);
  if (value !== null) return { ...given, value: isOptional(value) ? value.value : value };
  const { rule, example, isSecret, isUrl, mistakenSecret } = setting;
  if (given.file !== null) {
    throw new StartupError(
      `${given.name} names a file that must contain ${rule}: ${given.file}. Try: a value such as ${example}`,
    );
  }
  // Somebody may have put a password into any URL.
  const quoted = isUrl ? given.text.replace(/(\/\/[^:]*):.*@/, "$1:…@") : given.text;
  const shown = isSecret || mistakenSecret?.test(given.text) ? "" : `, not "${quoted}"`;
  const Mistake = given.source === "flag" ? UsageError : StartupError;
  throw new Mistake(`${given.name ?? setting.env} must be ${rule}${shown}. Try: ${remedyFor(setting, given)}`);
}

function remedyFor({ env, example, remedy }: Setting<unknown>, { source, name }: Omit<Given, "value">): string {
  if (remedy !== undefined) return remedy;
  return source === "flag" ? `${name} ${shellWord(example)}` : `${env}=${shellWord(example)}`;
}

const isOptional = (value: unknown): value is Optional<unknown> =>
  typeof value === "object" && value !== null && "value" in value;
