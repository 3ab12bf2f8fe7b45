import { type App, createApp } from "../app.ts";
import { type Config, loadConfig } from "../config.ts";
import { systemClock } from "../lib/clock.ts";
import { createLog, type Log } from "../lib/log.ts";
import { type Command, settingFlags } from "./command.ts";
import { type EndSignal, exitCode, type Io, signalExitCode } from "./io.ts";
import { createStyle } from "./style.ts";
import { formatPairs } from "./table.ts";

export const serveCommand: Command = {
  words: ["serve"],
  operands: [],
  flags: settingFlags,
  summary: "Run the server (also without a command)",
  details: `Runs until SIGTERM or SIGINT (Ctrl+C): then it turns new requests away, lets deliveries in
flight end and exits with 0. A second signal ends it at once; nothing accepted is lost.`,
  async run({ flags }, io) {
    const config = loadConfig(io.env, flags);
    const greets = io.isTerminal && config.logFormat !== "json";
    const log = createServerLog(config, greets, io);
    const app = createApp(config, { clock: systemClock, log });
    // From here on a signal means a clean end, also when it comes during the start.
    const asked = io.nextSignal();
    const { url } = await app.start();
    if (greets) io.out(welcome(url, config, io));

    const signal = await asked;
    log.write("info", "server.stopping", { signal });
    return Promise.race([stop(app), second(io.nextSignal())]);
  },
};

async function stop(app: App): Promise<number> {
  await app.stop();
  return exitCode.ok;
}

const second = async (signal: Promise<EndSignal>) => signalExitCode[await signal];

function createServerLog({ logLevel, logFormat }: Config, greets: boolean, io: Io): Log {
  const format = logFormat === "auto" ? (io.isTerminal ? "text" : "json") : logFormat;
  const log = createLog({ level: logLevel, format, now: systemClock.now, out: io.out });
  if (!greets) return log;
  // The welcome says it better.
  return {
    ...log,
    write: (level, event, fields) => {
      if (event !== "server.started") log.write(level, event, fields);
    },
  };
}

function welcome(url: string, { localMode, dataDir }: Config, io: Io): string {
  const style = createStyle(io);
  const mode = localMode
    ? "local: answers only to this machine, may deliver to it"
    : "public: delivers to public https addresses only";
  const lines = formatPairs(
    [
      ["Address", style.bold(url)],
      ["Mode", mode],
      ["Data", dataDir],
      ["Interface", `${url}/docs`],
      ["To stop", "Ctrl+C"],
    ],
    style,
  );
  return `\n${style.bold("Postrider is running")}\n\n${lines.replace(/^/gm, "  ")}\n`;
}
