import type { Completable, CompletableFlag, Form, Value } from "./completable.ts";

/** For fish 3.0 and later. */
export function fishScript({ firsts, groups, forms, flagsOfNone }: Completable): string {
  return [
    `# Completion of postrider for fish. In ~/.config/fish/config.fish: postrider completion fish | source
function __postrider_at
    set -l words (commandline -opc)
    set -e words[1]
    test "$words" = "$argv"
end
function __postrider_in
    set -l words (commandline -opc)
    set -e words[1]
    set -l last (count $argv)
    test (count $words) -ge $last; and test "$words[1..$last]" = "$argv"
end
complete -c postrider -e
complete -c postrider -f`,
    ...firsts.map(({ word, says }) => `complete -c postrider -n __postrider_at -a ${word} -d ${quoted(says)}`),
    ...flagsOfNone.map((flag) => flagLine("__postrider_at", flag)),
    ...groups.flatMap(({ first, verbs }) =>
      verbs.map(({ word, says }) => `complete -c postrider -n '__postrider_at ${first}' -a ${word} -d ${quoted(says)}`),
    ),
    ...forms.flatMap(formLines),
  ].join("\n");
}

function formLines({ words, flags, operands }: Form): string[] {
  const condition = `'__postrider_in ${words.join(" ")}'`;
  const offered = operands.length === 0 ? [] : [`complete -c postrider -n ${condition} -a '${operands.join(" ")}'`];
  return [...offered, ...flags.map((flag) => flagLine(condition, flag))];
}

const valueOptions: Readonly<Record<Value["kind"], string>> = {
  words: " -x",
  files: " -r -F",
  folders: " -x -a '(__fish_complete_directories)'",
  any: " -x",
};

function flagLine(condition: string, { name, says, value }: CompletableFlag): string {
  const words = value?.kind === "words" ? ` -a '${value.words.join(" ")}'` : "";
  const option = value === null ? "" : `${valueOptions[value.kind]}${words}`;
  return `complete -c postrider -n ${condition} -l ${name.slice(2)}${option} -d ${quoted(says)}`;
}

const quoted = (text: string): string => `'${text.replaceAll(/[\\']/g, "\\$&")}'`;
