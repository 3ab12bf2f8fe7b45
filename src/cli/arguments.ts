import { nearest } from "../lib/nearest.ts";

/** A command as it is typed: what the parser accepts and what the help shows. */
export interface CommandForm {
  /** `["tenant", "show"]`. */
  readonly words: readonly string[];
  /** Names of what must follow, such as `ID`. */
  readonly operands: readonly string[];
  /** Name of what may follow the operands, any number of words. */
  readonly restName?: string;
  readonly flags: readonly Flag[];
}

export interface Flag {
  /** With its dashes. */
  readonly name: string;
  /** What stands for its value in the help; without it the flag is a switch. */
  readonly value?: string;
  readonly doc: string;
}

export interface Arguments<Form extends CommandForm> {
  readonly form: Form;
  readonly operands: readonly string[];
  /** Switches have the value "". */
  readonly flags: ReadonlyMap<string, string>;
}

/** The command line has a mistake; the message is one line that ends with the nearest valid form. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** `postrider tenant show ID`. */
export const spell = ({ words, operands }: Pick<CommandForm, "words" | "operands">) =>
  ["postrider", ...words, ...operands].join(" ");

/**
 * Reads a command line: words, then operands and flags in any order (`--flag value` or `--flag=value`); after `--` all
 * is operand. No words at all mean the form of `serve`.
 * @throws UsageError
 */
export function parseArguments<Form extends CommandForm>(
  argv: readonly string[],
  forms: readonly Form[],
): Arguments<Form> {
  const form = findForm(argv, forms);
  const isBare = argv[0] !== form.words[0];
  const operands: string[] = [];
  const flags = new Map<string, string>();
  const rest = argv.slice(isBare ? 0 : form.words.length);
  while (rest.length > 0) {
    const word = rest.shift() ?? "";
    if (word === "--") operands.push(...rest.splice(0));
    else if (word.startsWith("-") && word !== "-") takeFlag(word, rest, form, flags);
    else operands.push(word);
  }
  checkOperands(operands, form);
  return { form, operands, flags };
}

function findForm<Form extends CommandForm>(argv: readonly string[], forms: readonly Form[]): Form {
  const [first = "serve", second] = argv;
  if (first.startsWith("-")) return findForm(["serve"], forms);
  const group = forms.filter(({ words }) => words[0] === first);
  const form = group.find(({ words }) => words.length === 1 || words[1] === second);
  if (form) return form;
  if (group.length === 0) {
    const word = nearest(first, [...new Set(forms.map(({ words }) => words[0] ?? ""))]);
    throw new UsageError(`There is no command "${first}". Try: ${correctedCommand(word, second, forms)}`);
  }
  const verbs = group.map(({ words }) => words[1] ?? "");
  if (second === undefined || second.startsWith("-")) {
    throw new UsageError(`"postrider ${first}" needs one of ${verbs.join(", ")}. Try: ${spell(group[0] as Form)}`);
  }
  const verb = nearest(second, verbs);
  const meant = group.find(({ words }) => words[1] === verb);
  throw new UsageError(
    `There is no command "${first} ${second}". Try: ${meant ? spell(meant) : `postrider help ${first}`}`,
  );
}

/** The whole command that was meant, as far as its words tell. */
function correctedCommand(word: string | null, second: string | undefined, forms: readonly CommandForm[]): string {
  const group = forms.filter(({ words }) => words[0] === word);
  const only = group[0];
  if (only === undefined) return "postrider help";
  if (group.length === 1) return spell(only);
  const verb = nearest(
    second ?? "",
    group.map(({ words }) => words[1] ?? ""),
  );
  return spell(group.find(({ words }) => words[1] === verb) ?? only);
}

function takeFlag(word: string, rest: string[], form: CommandForm, flags: Map<string, string>): void {
  const [, name = word, glued] = /^([^=]+)=(.*)$/s.exec(word) ?? [];
  const flag = form.flags.find((known) => known.name === name);
  if (!flag) throw new UsageError(`${described(form)} has no flag ${name}. Try: ${nearestFlag(name, form)}`);
  if (flags.has(name)) throw new UsageError(`${name} is given twice. Try: ${spellFlag(flag)} once`);
  if (flag.value === undefined) {
    if (glued !== undefined) throw new UsageError(`${name} takes no value. Try: ${name}`);
    flags.set(name, "");
    return;
  }
  const value = glued ?? takeValue(rest);
  if (value === undefined) throw new UsageError(`${name} needs a value. Try: ${spellFlag(flag)}`);
  flags.set(name, value);
}

/** The next word, unless it is a flag: a value that begins with dashes is written `--flag=--value`. */
const takeValue = (rest: string[]) => (rest[0]?.startsWith("--") ? undefined : rest.shift());

function nearestFlag(name: string, form: CommandForm): string {
  const found = nearest(
    name,
    form.flags.map((flag) => flag.name),
  );
  const flag = form.flags.find((known) => known.name === found);
  return flag ? spellFlag(flag) : `postrider help ${form.words[0]}`;
}

export const spellFlag = ({ name, value }: Flag) => (value === undefined ? name : `${name} ${value}`);

function checkOperands(given: readonly string[], form: CommandForm): void {
  const missing = form.operands[given.length];
  if (missing !== undefined) throw new UsageError(`${described(form)} needs ${missing}. Try: ${spell(form)}`);
  const extra = given[form.operands.length];
  if (extra === undefined || form.restName !== undefined) return;
  throw new UsageError(`"${extra}" is one word too many for ${described(form)}. Try: ${spell(form)}`);
}

const described = ({ words }: CommandForm) => `"postrider ${words.join(" ")}"`;
