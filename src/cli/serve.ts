import { uptime } from "node:os";
import { type App, createApp } from "../app.ts";
import { type Config, readSettings, toConfig, withFlags } from "../config.ts";
import { isUnavailable } from "../domain/errors.ts";
import { pausable } from "../domain/pauses.ts";
import type { Successor } from "../handover.ts";
import { systemClock } from "../lib/clock.ts";
import { createDatabaseClock } from "../lib/database-clock.ts";
import { messageOf } from "../lib/error-message.ts";
import { createLog, type Log } from "../lib/log.ts";
import { type ClockNews, createSteadyClock, disbeliefMs } from "../lib/steady-clock.ts";
import { settingsInForce } from "../settings-in-force.ts";
import { tellSupervisor } from "../supervisor.ts";
import { type Command, noSnapshotFlag, settingFlags } from "./command.ts";
import { exitCode, type Io, signalExitCode } from "./io.ts";
import { prepareData } from "./prepare.ts";
import { createRunOwn } from "./run-own.ts";
import { createStyle } from "./style.ts";
import { awaitEndRequests, createRestart, succeedTo } from "./succession.ts";
import { formatPairs } from "./table.ts";

export const serveCommand: Command = {
  words: ["serve"],
  operands: [],
  flags: [
    ...settingFlags,
    { name: "--paused", doc: "Hold back deliveries and charges until `postrider resume` (POSTRIDER_PAUSED)." },
    noSnapshotFlag,
  ],
  summary: "Run the server (the default command)",
  details: `Runs until SIGTERM or SIGINT (Ctrl+C): then it starts no more deliveries, lets those in flight
finish while it still answers requests, and exits with 0. A second signal ends it at once;
nothing accepted is lost. SIGHUP reloads the TLS certificate and key, SIGUSR2 does what
postrider restart does.`,
  async run({ flags }, io) {
    try {
      return await serve(flags, io);
    } catch (error) {
      io.predecessor?.say({ kind: "refused", message: messageOf(error) });
      throw error;
    }
  },
};

async function serve(flags: ReadonlyMap<string, string>, io: Io): Promise<number> {
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const settings = readSettings(io.env, flags, warn);
  const given = { ...toConfig(settings, io.env, warn), ...(flags.has("--paused") && { paused: pausable }) };
  const greets = io.isTerminal && given.logFormat !== "json";
  const log = createServerLog(given, greets, io);
  for (const message of warnings) log.write("warn", "config.warning", { message });
  const steadyClock = createSteadyClock({
    source: systemClock,
    uptimeMs: () => uptime() * 1000,
    tell: (news) => log.write("warn", "clock.jumped", { jump: news.kind, message: wordsOf(news) }),
  });
  // Servers that share a database go by the same clock.
  const databaseClock = given.databaseUrl === null ? null : createDatabaseClock(steadyClock);
  const clock = databaseClock ?? steadyClock;
  // From here on a signal means a clean end, even if it comes during the start.
  const { first: asked, second: askedAgain } = awaitEndRequests(io);
  const ended = new AbortController();
  const { signal: ending } = ended;
  void asked.then(() => ended.abort());
  let running: App | null = null;
  const { promise: succeeded, resolve: succeed } = Promise.withResolvers<Successor>();
  const restart = createRestart({ io, log, ending, app: () => running, succeed });
  io.onSignal((signal) => {
    if (signal === "SIGHUP" && running?.reloadCertificate()) return;
    // The reason for a refusal is in the log.
    if (signal === "SIGUSR2" && running) restart().catch(() => {});
    else log.write("info", "signal.ignored", { signal });
  });
  const succession = io.predecessor === null ? null : await succeedTo(io.predecessor, given, io.env);
  const takesSnapshot = !flags.has(noSnapshotFlag.name);
  const dataDir = await prepareData({
    config: given,
    clock,
    log,
    io,
    isWatched: greets,
    takesSnapshot,
    signal: ending,
  });
  if (dataDir === null) return exitCode.ok;
  const { secrets, path: storeFolder, held, isTokenNew } = dataDir;
  const config = { ...given, paused: pausable.filter((what) => given.paused.includes(what) || held.includes(what)) };
  const onTime = databaseClock?.heard;
  const starting = createApp(config, {
    clock,
    log,
    isLogBehind: io.isBehind,
    secrets,
    storeFolder,
    // A node that is alive gives back what it owns by itself.
    home: succession?.predecessorLives ? { ...dataDir, lastNode: () => null } : dataDir,
    inForce: settingsInForce(settings, config),
    reception: succession?.reception ?? null,
    restart,
    runOwn: createRunOwn(withFlags(io.env, flags), config.dataDir),
    ...(onTime && { onTime }),
    signal: ending,
  });
  const app = await starting.catch((error: unknown) => {
    if (ending.aborted && isUnavailable(error)) return null;
    throw error;
  });
  if (app === null) return exitCode.ok;
  if (!(await app.endRestore(ending))) {
    await app.stop();
    return exitCode.ok;
  }
  const { url } = await app.start();
  running = app;
  tellSupervisor(["READY=1"], io.env);
  // On PostgreSQL it may have given way to the one that the other servers have.
  const isOwnToken = isTokenNew && config.databaseUrl === null;
  const shownOnce = isOwnToken && config.localMode ? secrets.operatorToken : null;
  if (greets) io.out(welcome(url, config, shownOnce, io));

  const successor = await Promise.race([asked.then(() => null), succeeded]);
  if (successor) log.write("info", "server.succeeded", { byProcess: successor.pid, version: successor.version });
  const secondSignal = asked.then((signal) => {
    log.write("info", "server.stopping", { signal });
    tellSupervisor(["STOPPING=1"], io.env);
    return askedAgain();
  });
  const hurried = secondSignal.then((signal) => {
    successor?.kill();
    return signalExitCode[signal];
  });
  return Promise.race([successor ? handOver(app, successor, log, ending) : stop(app), hurried]);
}

async function stop(app: App): Promise<number> {
  await app.stop();
  return exitCode.ok;
}

async function handOver(app: App, successor: Successor, log: Log, ending: AbortSignal): Promise<number> {
  // A successor has heard of a stop from the one that started it.
  if ((await app.handOver(successor)) || ending.aborted) return exitCode.ok;
  // A supervisor restarts what ends like this.
  log.write("error", "server.not_succeeded", {});
  return exitCode.failed;
}

/** For the operator. The log's own timestamps always come from the machine's clock, whatever it says. */
function wordsOf(news: ClockNews): string {
  switch (news.kind) {
    case "ahead":
      return (
        `The machine's clock has jumped ${formatSpan(news.byMs)} ahead. The server keeps to its own time and follows the ` +
        `clock only if it stays ahead for ${disbeliefMs / 60_000} minutes. Try: check the machine's time service.`
      );
    case "ahead_over":
      return "The machine's clock is back; nothing was recorded with the wrong time.";
    case "ahead_believed":
      return (
        `The machine's clock has stayed ${formatSpan(news.byMs)} ahead, so the server now follows it. If it is wrong, ` +
        "correct it now: ids only increase, so all events until then carry times ahead of the clock."
      );
    case "back":
      return `The machine's clock was set back by ${formatSpan(news.byMs)}. Events keep the order in which they were accepted.`;
  }
}

function formatSpan(ms: number): string {
  const hours = ms / 3_600_000;
  return hours < 48 ? `${hours.toFixed(1)} hours` : `${(hours / 24).toFixed(1)} days`;
}

function createServerLog({ logLevel, logFormat }: Config, greets: boolean, io: Io): Log {
  const format = logFormat === "auto" ? (io.isTerminal ? "text" : "json") : logFormat;
  const log = createLog({ level: logLevel, format, now: systemClock.now, out: io.out });
  if (!greets) return log;
  // The welcome message says it better.
  return {
    ...log,
    write: (level, event, fields) => {
      if (event !== "server.started") log.write(level, event, fields);
    },
  };
}

function welcome(
  url: string,
  { localMode, dataDir, databaseUrl, paused }: Config,
  operatorToken: string | null,
  io: Io,
): string {
  const style = createStyle(io);
  const mode = localMode
    ? "local: serves only this machine, may deliver to it"
    : "public: delivers to public https addresses only";
  const lines = formatPairs(
    [
      ["Address", style.bold(url)],
      ["Mode", mode],
      ["Data", databaseUrl === null ? dataDir : addressOf(databaseUrl)],
      ["API reference", `${url}/docs`],
      ...(operatorToken === null
        ? []
        : ([
            ["Operator", `${url}/operator`],
            ["Its token", `${operatorToken}, shown this once: later by postrider operator token`],
          ] as const)),
      ...(paused.length > 0 ? [["Paused", `${paused.join(" and ")}, until postrider resume`] as const] : []),
      ["To stop", "Ctrl+C"],
    ],
    style,
  );
  return `\n${style.bold("Postrider is running")}\n\n${lines.replace(/^/gm, "  ")}\n`;
}

/** Without user name and password. */
function addressOf(databaseUrl: string): string {
  const { host, pathname } = new URL(databaseUrl);
  return `PostgreSQL ${host}${pathname}`;
}
