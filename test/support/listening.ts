import { parseArguments } from "../../src/cli/arguments.ts";
import { createListenCommand } from "../../src/cli/listen/listen.ts";
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import { createScriptedIo, type Script } from "./scripted-io.ts";
import type { TestAccount } from "./test-app.ts";

export interface ListeningOptions extends Script {
  url: string;
  account: Pick<TestAccount, "id" | "password">;
  forwardTo: string;
  /** Additional arguments of the command line. */
  words?: readonly string[];
  clock?: Clock;
}

/** `postrider listen`, run in this process as if typed. */
export function startListening({
  url,
  account,
  forwardTo,
  words = [],
  clock = systemClock,
  ...script
}: ListeningOptions) {
  const env = { POSTRIDER_URL: url, POSTRIDER_LOGIN: account.id, POSTRIDER_PASSWORD: account.password, ...script.env };
  const terminal = createScriptedIo({ ...script, env });
  const command = createListenCommand({ clock });
  const args = parseArguments(["listen", "--forward-to", forwardTo, ...words], [command]);
  let code: number | null = null;
  const ended = command.run(args, terminal.io).then((end) => {
    code = end;
    return end;
  });
  ended.catch(() => {});

  const { out, err, questions, secretQuestions, when, interrupt } = terminal;
  return {
    out,
    err,
    questions,
    secretQuestions,
    when,
    interrupt,
    ended,
    /** Null while it runs. */
    get code() {
      return code;
    },
    /** Resolves when it follows the stream. */
    whenOpen: () => Promise.race([when(err, (line) => line.startsWith("Forwarding")), ended.then(failed)]),
    /** Resolves when this many lines have been printed. */
    async whenPrinted(n: number): Promise<readonly string[]> {
      await Promise.race([when(out, () => out.length >= n), ended.then(failed)]);
      return out;
    },
    async stop(): Promise<number> {
      interrupt();
      return ended;
    },
  };

  function failed(end: number): never {
    throw new Error(`It ended with ${end}: ${err.join("\n")}`);
  }
}
