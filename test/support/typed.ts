import { afterAll, beforeAll } from "bun:test";
import { runCommand } from "../../src/cli/run.ts";
import { type Hooks, startHooks } from "./api-server.ts";
import { createScriptedIo, type Script } from "./scripted-io.ts";
import { startTestApp, type TestAccount, type TestApp } from "./test-app.ts";

/** A command line typed on a machine where an account is signed in, run in this process. */
export function type(url: string, { jwt }: Pick<TestAccount, "jwt">, argv: readonly string[], script: Script = {}) {
  const env = { POSTRIDER_URL: url, POSTRIDER_TOKEN: jwt, ...script.env };
  const { io, out, err, progress, questions, interrupt, when } = createScriptedIo({ ...script, env });
  const ended = runCommand(argv, io);
  return { out, err, progress, questions, interrupt, when, ended };
}

/** A server that retries after an hour, receivers, and a command line, for all tests of a file. */
export function useTyped() {
  let app: TestApp;
  let hooks: Hooks;

  beforeAll(async () => {
    app = await startTestApp({ env: { POSTRIDER_RETRY_SCHEDULE: "1h" } });
    hooks = await startHooks();
  });

  afterAll(async () => {
    hooks.stop();
    await app.stop();
  });

  return {
    get app() {
      return app;
    },
    get hooks() {
      return hooks;
    },
    async run(account: TestAccount, line: string, script: Script = {}) {
      const { ended, out, err, questions } = type(app.url, account, line.split(" "), script);
      return { code: await ended, out: out.join("\n"), err, questions };
    },
  };
}
