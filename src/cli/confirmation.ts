import type { Io } from "./io.ts";

/** Whether the user says yes to a question that ends with `[y/N] `; null when nobody can be asked. */
export async function confirm(question: string, io: Pick<Io, "ask">): Promise<boolean | null> {
  const answer = await io.ask(question);
  return answer === null ? null : /^y(es)?$/i.test(answer.trim());
}
