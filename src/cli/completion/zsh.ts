import type { Choice, Completable, CompletableFlag, Form, Value } from "./completable.ts";

/** For zsh with its completion system: sourced after `compinit`, or as a file `_postrider` in a folder on `fpath`. */
export function zshScript({ firsts, groups, forms, flagsOfNone }: Completable): string {
  const names = groups.map(({ first }) => first).join("|");
  return `#compdef postrider
# Completion of postrider for zsh. In ~/.zshrc, after compinit: source <(postrider completion zsh)
_postrider() {
  local curcontext="$curcontext" form=$words[2]
  local -a choices
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    choices=(
${choiceLines(firsts)}
    )
    _describe -t commands command choices
    return
  fi
  if [[ $form == (${names}) ]]; then
    if (( CURRENT == 3 )); then
      case $form in
${groups.map(({ first, verbs }) => `        ${first}) choices=(\n${choiceLines(verbs)}\n        ) ;;`).join("\n")}
      esac
      _describe -t commands command choices
      return
    fi
    form="$form $words[3]"
    shift words
    (( CURRENT-- ))
  fi
  if [[ $form != -* ]]; then
    shift words
    (( CURRENT-- ))
  fi
  case $form in
    -*)
      _arguments \\
${flagsOfNone.map(flagLine).join(" \\\n")} ;;
${forms.map(formCase).join("\n")}
  esac
}
if [[ $funcstack[1] == _postrider ]]; then
  _postrider "$@"
else
  compdef _postrider postrider
fi`;
}

const choiceLines = (choices: readonly Choice[]) =>
  choices.map(({ word, says }) => `      '${word}:${escaped(says)}'`).join("\n");

function formCase({ words, flags, operands }: Form): string {
  const offered = operands.length === 0 ? [] : [`        '*: :(${operands.join(" ")})'`];
  return `    '${words.join(" ")}')\n      _arguments \\\n${[...flags.map(flagLine), ...offered].join(" \\\n")} ;;`;
}

const flagLine = ({ name, says, value }: CompletableFlag): string =>
  `        '${name}${value === null ? "" : "="}[${escaped(says)}]${value === null ? "" : actionOf(value)}'`;

const actions: Readonly<Record<Value["kind"], string>> = { words: "", files: "_files", folders: "_files -/", any: " " };

const actionOf = ({ name, kind, words }: Value): string =>
  `:${name}:${kind === "words" ? `(${words.join(" ")})` : actions[kind]}`;

/** Escaped for a description within single quotes. */
const escaped = (text: string): string => text.replaceAll(/[\\[\]:$]/g, "\\$&").replaceAll("'", "'\\''");
