import { afterAll, beforeAll } from "bun:test";
import { parseArguments } from "../../src/cli/arguments.ts";
import { runCommand } from "../../src/cli/run.ts";
import { createSendCommand } from "../../src/cli/send/send.ts";
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import { type ReceivedRequest, type Receiver, startReceiver } from "./receiver.ts";
import { createScriptedIo } from "./scripted-io.ts";
import { startTestApp, type TestAccount, type TestApp } from "./test-app.ts";

export interface SendOptions {
  url?: string;
  env?: Record<string, string>;
  answers?: string[];
  input?: AsyncIterable<Uint8Array>;
  clock?: Clock;
}

/** `postrider send` as it would be typed, and a server with an account for all tests of a file. */
export function useSend() {
  const receivers: Receiver[] = [];
  let app: TestApp;
  let account: TestAccount;

  beforeAll(async () => {
    app = await startTestApp();
    account = await app.account();
    await account.setTier("business");
  });

  afterAll(async () => {
    await Promise.all(receivers.map((receiver) => receiver.stop()));
    await app.stop();
  });

  /** Runs in this process. */
  function begin(
    words: readonly string[],
    { url = app.url, env, answers, input, clock = systemClock }: SendOptions = {},
  ) {
    const terminal = createScriptedIo({
      env: { POSTRIDER_URL: url, POSTRIDER_API_KEY: account.apiKey, ...env },
      ...(answers && { answers }),
      ...(input && { input }),
    });
    const command = createSendCommand({ clock });
    return { terminal, ended: command.run(parseArguments(["send", ...words], [command]), terminal.io) };
  }

  return {
    get app() {
      return app;
    },
    get account() {
      return account;
    },
    begin,
    async send(words: readonly string[], options?: SendOptions) {
      const { terminal, ended } = begin(words, options);
      const { out, err, progress, secretQuestions } = terminal;
      return { code: await ended, out, err, progress, secretQuestions };
    },
    /** What ends in one line of the program itself. */
    async refusal(words: readonly string[], env: Record<string, string> = {}) {
      const { io, out, err } = createScriptedIo({ env: { POSTRIDER_URL: app.url, ...env } });
      const code = await runCommand(["send", ...words], io);
      return { code, out, err };
    },
    async receivedBy(answer: (request: ReceivedRequest) => Response | Promise<Response>): Promise<Receiver> {
      const receiver = startReceiver({ answer });
      receivers.push(receiver);
      return receiver;
    },
  };
}

/** Accepts a batch as a server would: the number in each payload becomes its id. */
export const acceptBatch = (request: ReceivedRequest) => {
  const { events } = request.json() as { events: { payload: { n: number } }[] };
  return Response.json(
    { status: "accepted", eventIds: events.map(({ payload }) => `evt_${payload.n}`) },
    { status: 202 },
  );
};
