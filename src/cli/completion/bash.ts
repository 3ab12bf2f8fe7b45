import type { Completable, CompletableFlag, Form, Value } from "./completable.ts";

/**
 * For bash 3.2 and later, because macOS ships 3.2: no associative arrays, no `mapfile`, and nothing from the bash-completion
 * package. Names and choices consist of letters, digits and dashes, so nothing in them has to be quoted.
 */
export function bashScript({ firsts, groups, forms, flagsOfNone }: Completable): string {
  const words = firsts.map(({ word }) => word).join(" ");
  return `# Completion of postrider for bash. In ~/.bashrc: source <(postrider completion bash)
_postrider() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]}
  local first= second= flags= operands= kind=words values=
  # bash takes --flag=value for three words.
  if [[ $current == "=" ]]; then
    current=
  elif [[ $previous == "=" ]]; then
    previous=\${COMP_WORDS[COMP_CWORD-2]}
  fi
  (( COMP_CWORD > 1 )) && first=\${COMP_WORDS[1]}
  (( COMP_CWORD > 2 )) && second=\${COMP_WORDS[2]}
  case "$first $second" in
    " "|-*)
      [[ -z $first ]] && operands="${words}"
${flagLines(flagsOfNone)} ;;
${groups.map(({ first, verbs }) => `    "${first} ") operands="${verbs.map(({ word }) => word).join(" ")}" ;;`).join("\n")}
${forms.map(formCase).join("\n")}
  esac
  COMPREPLY=()
  local IFS=$' \\n'
  case $kind in
    files|folders)
      IFS=$'\\n'
      compopt -o filenames 2>/dev/null
      [[ $kind == files ]] && COMPREPLY=( $(compgen -f -- "$current") ) || COMPREPLY=( $(compgen -d -- "$current") ) ;;
    values) COMPREPLY=( $(compgen -W "$values" -- "$current") ) ;;
    words)
      if [[ $current == -* ]]; then
        COMPREPLY=( $(compgen -W "$flags" -- "$current") )
      else
        COMPREPLY=( $(compgen -W "$operands" -- "$current") )
      fi ;;
  esac
}
complete -F _postrider postrider`;
}

function formCase({ words: [first, second], flags, operands }: Form): string {
  const pattern = second === undefined ? `"${first} "*` : `"${first} ${second}"`;
  const offered = operands.length === 0 ? "" : `      operands="${operands.join(" ")}"\n`;
  return `    ${pattern})\n${offered}${flagLines(flags)} ;;`;
}

function flagLines(flags: readonly CompletableFlag[]): string {
  const namesOf = (kind: Value["kind"]) => flags.filter(({ value }) => value?.kind === kind).map(({ name }) => name);
  const cases = [
    ...flags.flatMap(({ name, value }) =>
      value?.kind === "words" ? [`${name}) kind=values values="${value.words.join(" ")}" ;;`] : [],
    ),
    ...(["files", "folders", "any"] as const).flatMap((kind) => {
      const names = namesOf(kind);
      return names.length === 0 ? [] : [`${names.join("|")}) kind=${kind} ;;`];
    }),
  ];
  const all = `      flags="${flags.map(({ name }) => name).join(" ")}"`;
  if (cases.length === 0) return all;
  return [all, "      case $previous in", ...cases.map((line) => `        ${line}`), "      esac"].join("\n");
}
