import type { Flag } from "../arguments.ts";
import type { Command } from "../command.ts";

/** The command line as a shell sees it. */
export interface Completable {
  /** What may come first: commands and command groups. */
  readonly firsts: readonly Choice[];
  /** What may come second, after a group. */
  readonly groups: readonly { readonly first: string; readonly verbs: readonly Choice[] }[];
  readonly forms: readonly Form[];
  /** Flags of the command that runs when none is named. */
  readonly flagsOfNone: readonly CompletableFlag[];
}

export interface Choice {
  readonly word: string;
  readonly says: string;
}

export interface Form {
  /** One word or two. */
  readonly words: readonly string[];
  readonly flags: readonly CompletableFlag[];
  /** What is offered for operands. */
  readonly operands: readonly string[];
}

export interface CompletableFlag {
  readonly name: string;
  readonly says: string;
  /** Null: the flag is a switch. */
  readonly value: Value | null;
}

/** What is offered for a value: these words, paths on this machine, or nothing. */
export interface Value {
  readonly name: string;
  readonly kind: "words" | "files" | "folders" | "any";
  readonly words: readonly string[];
}

const helpFlag: Flag = { name: "--help", doc: "Show the help of the command." };

export function completableOf(commands: readonly Command[]): Completable {
  const names = [...new Set(commands.map(({ words: [first = ""] }) => first))];
  const membersOf = (name: string) =>
    commands.filter(({ words: [first, ...more] }) => first === name && more.length > 0);
  const groups = names
    .map((first) => ({ first, verbs: membersOf(first).map((each) => choiceOf(each.words[1] ?? "", each.summary)) }))
    .filter(({ verbs }) => verbs.length > 0);
  const formOf = ({ words, flags, operands, operandChoices = {}, restName }: Command): Form => ({
    words,
    flags: [...flags, helpFlag].map(flagOf),
    operands: [...operands.flatMap((name) => operandChoices[name] ?? []), ...(restName === "COMMAND" ? names : [])],
  });
  const serve = commands.find(({ words: [first] }) => first === "serve");
  return {
    firsts: names.map((name) => {
      const group = groups.find(({ first }) => first === name);
      const alone = commands.find(({ words }) => words.join(" ") === name);
      return choiceOf(name, group ? group.verbs.map(({ word }) => word).join(", ") : (alone?.summary ?? ""));
    }),
    groups,
    forms: commands.map(formOf),
    flagsOfNone: [...(serve?.flags ?? []), helpFlag, { name: "--version", doc: "Print the version." }].map(flagOf),
  };
}

const choiceOf = (word: string, summary: string): Choice => ({ word, says: firstSentence(summary) });

function flagOf({ name, value, choices = [], doc }: Flag): CompletableFlag {
  return { name, says: firstSentence(doc), value: value === undefined ? null : offerFor(value, choices) };
}

function offerFor(name: string, words: readonly string[]): Value {
  if (words.length > 0) return { name, kind: "words", words };
  return { name, kind: name === "FILE" ? "files" : name === "DIR" ? "folders" : "any", words };
}

/** A completion menu has one line for each choice. */
const firstSentence = (text: string): string => (text.split(/\.(?: |$)|\n/)[0] ?? "").replaceAll("`", "");
