import type { EndSignal, Io } from "../../src/cli/io.ts";

/** A person and a terminal for commands under test. */
export function createScriptedIo(options: Partial<Pick<Io, "env" | "isTerminal">> & { answers?: string[] } = {}) {
  const { env = {}, isTerminal = false, answers = [] } = options;
  const out: string[] = [];
  const err: string[] = [];
  const questions: string[] = [];
  const io: Io = {
    env,
    isTerminal,
    out: (text) => out.push(text),
    err: (line) => err.push(line),
    ask(question) {
      questions.push(question);
      return Promise.resolve(answers.shift() ?? null);
    },
    nextSignal: () => new Promise<EndSignal>(() => {}),
  };
  return { io, out, err, questions };
}
