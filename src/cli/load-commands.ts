import type { Command } from "./command.ts";

/** Commands that are started often, or while somebody waits, by their first word: each loads nothing but its own modules. */
const loadedAlone: Readonly<Record<string, () => Promise<readonly Command[]>>> = {
  serve: async () => [(await import("./serve.ts")).serveCommand],
  listen: async () => [(await import("./listen/listen.ts")).listenCommand],
  send: async () => [(await import("./send/send.ts")).sendCommand],
  events: async () => [
    (await import("./events/list.ts")).eventsListCommand,
    (await import("./events/show.ts")).eventsShowCommand,
  ],
  replay: async () => (await import("./replay/replay.ts")).replayCommands,
  webhooks: async () => (await import("./webhooks/webhooks.ts")).webhookCommands,
  healthcheck: async () => [(await import("./healthcheck.ts")).healthcheckCommand],
};

export const wordsLoadedAlone: readonly string[] = Object.keys(loadedAlone);

/** The commands that begin with this word; all of them if it is null, or may be another one. */
export async function loadCommands(word: string | null): Promise<readonly Command[]> {
  const load = word !== null && Object.hasOwn(loadedAlone, word) ? loadedAlone[word] : undefined;
  return load ? load() : (await import("./commands.ts")).commands;
}
