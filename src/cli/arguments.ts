import { parseArgs } from "node:util";
import { UsageError } from "../domain/errors.ts";
import { nearest } from "../lib/nearest.ts";
import { shellWord } from "../lib/shell-word.ts";

/** A command's form: what the parser accepts and what the help shows. */
export interface CommandForm {
  /** `["tenant", "show"]`. */
  readonly words: readonly string[];
  /** Whether its first word alone means it, too. */
  readonly isDefault?: boolean;
  /** Names of the required operands, such as `ID`. */
  readonly operands: readonly string[];
  /** Completions a shell offers for operands, by operand name. */
  readonly operandChoices?: Readonly<Record<string, readonly string[]>>;
  /** Name for any further words that may follow the operands. */
  readonly restName?: string;
  readonly flags: readonly Flag[];
}

export interface Flag {
  /** With its dashes. */
  readonly name: string;
  /** Placeholder for its value in the help; without it the flag is a switch. */
  readonly value?: string;
  /** Completions a shell offers for its value; other values may be valid too. */
  readonly choices?: readonly string[];
  /** Whether a word without any flag is likely to be meant as its value. */
  isMeantBy?(word: string): boolean;
  readonly doc: string;
}

export interface Arguments<Form extends CommandForm> {
  readonly form: Form;
  readonly operands: readonly string[];
  /** Switches have the value "". */
  readonly flags: ReadonlyMap<string, string>;
}

/** `postrider tenant show ID`. */
export const spell = ({ words, operands }: Pick<CommandForm, "words" | "operands">) =>
  ["postrider", ...words, ...operands].join(" ");

/** `postrider tenant set-tier ID free|pro`: where there is a choice, a hint names what there is. */
const example = ({ words, operands, operandChoices = {} }: CommandForm) =>
  spell({ words, operands: operands.map((name) => operandChoices[name]?.join("|") ?? name) });

/**
 * Reads a command line: words, then operands and flags in any order (`--flag value` or `--flag=value`); everything after
 * `--` is an operand. No words at all mean the form of `serve`.
 * @throws UsageError
 */
export function parseArguments<Form extends CommandForm>(
  argv: readonly string[],
  forms: readonly Form[],
): Arguments<Form> {
  const form = findForm(argv, forms);
  const args = argv.slice(form.words.filter((word, i) => argv[i] === word).length);
  const { tokens, positionals: operands } = parseArgs({
    args,
    options: Object.fromEntries(
      form.flags.map(({ name, value }) => [name.slice(2), { type: value === undefined ? "boolean" : "string" }]),
    ),
    tokens: true,
    // Strict mode would refuse in its own words, without the nearest valid form.
    strict: false,
  });
  const flags = new Map<string, string>();
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    // Not the token's name: `-port` would be parsed as `-p` and three more, but is meant as `--port`.
    const [name = ""] = args[token.index]?.split("=") ?? [];
    const flag = findFlag(name, form);
    if (flags.has(flag.name)) throw new UsageError(`${flag.name} is given twice. Try: ${spellFlag(flag)} once`);
    flags.set(flag.name, readValue(flag, token));
  }
  checkOperands(operands, form, flags);
  return { form, operands, flags };
}

function findForm<Form extends CommandForm>(argv: readonly string[], forms: readonly Form[]): Form {
  const [first = "serve", second = ""] = argv;
  if (first.startsWith("-")) return findForm(["serve"], forms);
  const groupOf = (word: string | null) => forms.filter(({ words }) => words[0] === word);
  const group = groupOf(first);
  const isVerb = second !== "" && !second.startsWith("-");
  const form =
    group.find(({ words }) => words[1] === second) ??
    group.find(({ words }) => words.length === 1) ??
    (isVerb ? undefined : group.find(({ isDefault }) => isDefault));
  if (form) return form;
  if (group[0] === undefined) {
    const near = groupOf(nearest(first, [...new Set(forms.map(({ words }) => words[0] ?? ""))]));
    const meant = nearestVerb(second, near) ?? near[0];
    throw new UsageError(`There is no command "${first}". Try: ${meant ? example(meant) : "postrider help"}`);
  }
  if (!isVerb) {
    const verbs = group.map(({ words }) => words[1]).join(", ");
    throw new UsageError(`"postrider ${first}" needs one of ${verbs}. Try: ${example(group[0])}`);
  }
  const meant = nearestVerb(second, group);
  const remedy = meant ? example(meant) : `postrider help ${first}`;
  throw new UsageError(`There is no command "${first} ${second}". Try: ${remedy}`);
}

function nearestVerb(verb: string, group: readonly CommandForm[]): CommandForm | undefined {
  const verbs = group.map(({ words }) => words[1] ?? "");
  return group[verbs.indexOf(nearest(verb, verbs) ?? verb)];
}

function findFlag(name: string, form: CommandForm): Flag {
  const names = form.flags.map((flag) => flag.name);
  const flag = form.flags[names.indexOf(name)];
  if (flag) return flag;
  const meant = form.flags[names.indexOf(nearest(name, names) ?? name)];
  const remedy = meant ? spellFlag(meant) : `postrider help ${form.words[0]}`;
  throw new UsageError(`${described(form)} has no flag ${name}. Try: ${remedy}`);
}

/** A value that begins with dashes is written `--flag=--value`: the next word may be another flag. */
function readValue(flag: Flag, given: { value: string | undefined; inlineValue: boolean | undefined }): string {
  const { value = "", inlineValue: isInline } = given;
  if (flag.value === undefined) {
    if (isInline) throw new UsageError(`${flag.name} takes no value. Try: ${flag.name}`);
  } else if (given.value === undefined || (!isInline && value.startsWith("--"))) {
    throw new UsageError(`${flag.name} needs a value. Try: ${spellFlag(flag)}`);
  }
  return value;
}

export const spellFlag = ({ name, value }: Flag) => (value === undefined ? name : `${name} ${value}`);

function checkOperands(given: readonly string[], form: CommandForm, flags: ReadonlyMap<string, string>): void {
  const missing = form.operands[given.length];
  if (missing !== undefined) throw new UsageError(`${described(form)} needs ${missing}. Try: ${example(form)}`);
  const extra = given[form.operands.length];
  if (extra === undefined || form.restName !== undefined) return;
  const meant = form.flags.find((flag) => !flags.has(flag.name) && flag.isMeantBy?.(extra));
  const remedy = meant === undefined ? example(form) : `${example(form)} ${meant.name} ${shellWord(extra)}`;
  throw new UsageError(`Unexpected argument "${extra}" for ${described(form)}. Try: ${remedy}`);
}

const described = ({ words }: CommandForm) => `"postrider ${words.join(" ")}"`;
