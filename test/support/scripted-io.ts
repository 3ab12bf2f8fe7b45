import type { EndSignal, Io } from "../../src/cli/io.ts";

export interface Script extends Partial<Pick<Io, "env" | "isTerminal">> {
  /** Answers to the questions, in order. */
  answers?: string[];
  /** Piped input; if omitted, a person's keyboard. */
  input?: AsyncIterable<Uint8Array>;
}

/** A person and a terminal, for testing commands. */
export function createScriptedIo({ env = {}, isTerminal = false, answers = [], input }: Script = {}) {
  const out: string[] = [];
  const err: string[] = [];
  const questions: string[] = [];
  /** Questions whose answers are hidden. */
  const secretQuestions: string[] = [];
  const progress: string[] = [];
  const signals: EndSignal[] = [];
  const signalled: ((signal: EndSignal) => void)[] = [];
  const waiting = new Set<() => void>();
  const write = (lines: string[], text: string) => {
    lines.push(text);
    for (const look of [...waiting]) look();
  };
  const io: Io = {
    env,
    args: [],
    predecessor: null,
    isTerminal,
    out: (text) => write(out, text),
    err: (line) => write(err, line),
    ask(question) {
      questions.push(question);
      return Promise.resolve(answers.shift() ?? null);
    },
    askSecretly(question) {
      secretQuestions.push(question);
      return Promise.resolve(answers.shift() ?? null);
    },
    input: () => input ?? null,
    progress: (line) => write(progress, line),
    standBack() {},
    isBehind: () => false,
    onSignal() {},
    nextSignal() {
      const earlier = signals.shift();
      return earlier ? Promise.resolve(earlier) : new Promise((resolve) => signalled.push(resolve));
    },
  };
  return {
    io,
    out,
    err,
    questions,
    secretQuestions,
    progress,
    /** Ctrl+C. */
    interrupt() {
      const resolve = signalled.shift();
      if (resolve) resolve("SIGINT");
      else signals.push("SIGINT");
    },
    /** Resolves with the first line that fits, even if it was printed before. */
    when(lines: readonly string[], fits: (line: string) => boolean): Promise<string> {
      return new Promise((resolve) => {
        const look = () => {
          const found = lines.find(fits);
          if (found === undefined) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
      });
    },
  };
}
