import { constants, setPriority } from "node:os";
import { isatty } from "node:tty";
import { type EndSignal, exitCode, type Io, otherSignals, signalExitCode } from "./cli/io.ts";
import { successorVariable } from "./cli/successor-variable.ts";
import { askOnTerminal, askSecretly, createProgressLine, isTerminalGone } from "./cli/terminal.ts";
import type { Predecessor, PredecessorMessage } from "./handover.ts";
import { codeOf, messageOf } from "./lib/error-message.ts";

/** Older ones leak on aborted bodies, newer ones are untested (hazards, section 3). */
const requiredBun = "1.4.5";

/** argv → command → exit code. The only place that ends the process. */
async function main(): Promise<void> {
  if (typeof Bun === "undefined" || Bun.version !== requiredBun) {
    const found = typeof Bun === "undefined" ? `Node ${process.version}` : `Bun ${Bun.version}`;
    process.stderr.write(
      `postrider: Postrider requires Bun ${requiredBun} exactly, and this is ${found}. Try: npm start\n`,
    );
    return endSoon(exitCode.failed);
  }
  // Loaded only now: another runtime would fail on the imports before it could say why.
  const { runCommand, startsServer } = await import("./cli/run.ts");
  isServer = startsServer(io.args);
  const code = await runCommand(io.args, io);
  if (isAskedToEnd || isServer) endSoon(code);
  else endOnceRead(code);
}

/** Taken for one until the arguments are read. */
let isServer = true;

const progress = createProgressLine(process.stderr);
const lines = createLineWriter();

/** A reader that has stopped reading does not keep a server alive for longer, nor what has crashed or was asked to end. */
const lastWordsMs = 2000;
let isAskedToEnd = false;

const predecessor = readPredecessor();

const io: Io = {
  env: process.env,
  args: process.argv.slice(2),
  predecessor,
  out: lines.write,
  isBehind: lines.isBehind,
  err(line) {
    // On a terminal both are one text, which is read in the order it was written.
    lines.flush();
    progress.above(`${line}\n`);
  },
  isTerminal: process.stdout.isTTY === true,
  ask: askOnTerminal,
  askSecretly,
  input: () => (process.stdin.isTTY === true ? null : process.stdin),
  progress: progress.show,
  standBack() {
    try {
      setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
    } catch {
      // Where this is not allowed, the machine shares as it does.
    }
  },
  nextSignal: () =>
    new Promise<EndSignal>((resolve) => {
      const asked = (signal: EndSignal) => {
        isAskedToEnd = true;
        resolve(signal);
      };
      for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, asked);
    }),
  onSignal(listener) {
    const hadTerminal = isatty(0);
    for (const signal of otherSignals) {
      process.on(signal, () => {
        // The window was closed: whoever started the program there does not expect it to stay.
        if (signal === "SIGHUP" && hadTerminal && isTerminalGone()) process.kill(process.pid, "SIGTERM");
        else listener(signal);
      });
    }
  },
};

/** The channel to the server that started this one as its successor; null: something else started it. */
function readPredecessor(): Predecessor | null {
  if (process.env[successorVariable] !== String(process.ppid) || !process.send) return null;
  delete process.env[successorVariable];
  const heard = new Set<string>();
  const waiting: (() => void)[] = [];
  const wake = () => {
    for (const look of waiting.splice(0)) look();
  };
  process.on("message", (message: PredecessorMessage) => {
    heard.add(message.kind);
    wake();
  });
  let isGone = false;
  process.on("disconnect", () => {
    isGone = true;
    wake();
  });
  return {
    say: (message) => void (isGone || process.send?.(message)),
    async heard(kind) {
      while (!isGone && !heard.has(kind)) await new Promise<void>((resolve) => waiting.push(resolve));
      return heard.has(kind);
    },
  };
}

/** Standard output whose reader stands still has this much in memory, which is some 20,000 lines of a log. */
const mostWaitingCharacters = 8 * 2 ** 20;

/** Lines from one turn of the loop go out in one write: under load the log has thousands a second. */
function createLineWriter() {
  let lines: string[] = [];
  let written = Promise.resolve();
  let failure: Error | null = null;
  let waiting = 0;
  // Whoever writes hears of it, too.
  process.stdout.on("error", () => {});
  const flush = () => {
    if (lines.length === 0) return;
    const text = lines.join("");
    lines = [];
    if (process.stdout.isTTY === true) progress.above("");
    waiting += text.length;
    const taken = new Promise<void>((resolve) => {
      process.stdout.write(text, (error) => {
        waiting -= text.length;
        failure ??= error ?? null;
        resolve();
      });
    });
    written = written.then(() => taken);
  };
  return {
    write(text: string) {
      if (lines.push(`${text}\n`) === 1) setImmediate(flush);
    },
    flush,
    isBehind: () => waiting > mostWaitingCharacters,
    /** Resolves when everything flushed has been taken. An empty write would not tell: Bun 1.4.5 calls back immediately. */
    whenWritten: () => written,
    /** Why some of it was lost; null: none was. A reader that has gone (`postrider help | head -1`) wants no more. */
    loss: () => (failure !== null && codeOf(failure) !== "EPIPE" ? failure : null),
  };
}

function endSoon(code: number): void {
  setTimeout(() => process.exit(code), lastWordsMs);
  endWhenWritten(code);
}

/** What a command has to say is of use as a whole only: a slow reader gets all of it, unless a signal ends the wait. */
function endOnceRead(code: number): void {
  void io.nextSignal().then((signal) => process.exit(signalExitCode[signal]));
  endWhenWritten(code);
}

/** Waits for what was written last: a pipe may take it only after the process would have ended. */
function endWhenWritten(code: number): void {
  setImmediate(async () => {
    await lines.whenWritten();
    const loss = lines.loss();
    // A server is not run for its log.
    if (loss === null || isServer) return process.stderr.write("", () => process.exit(code));
    const said = `postrider: The output is incomplete (${messageOf(loss)}). Try: free some space, or write it elsewhere.\n`;
    process.stderr.write(said, () => process.exit(code === exitCode.ok ? exitCode.failed : code));
  });
}

/** A bug ends the program with a sentence, not with its source text. What it had acknowledged is on disk. */
function crash(error: unknown): void {
  const message = messageOf(error).replaceAll(/\s+/g, " ");
  const again = isServer ? "start" : "run";
  process.stderr.write(
    `postrider: Unexpected error (${message}); every acknowledged event is stored. Try: ${again} it again and, if it ` +
      "happens again, report this line with the stack that POSTRIDER_LOG_LEVEL=debug adds.\n",
  );
  if (process.env.POSTRIDER_LOG_LEVEL === "debug" && error instanceof Error) process.stderr.write(`${error.stack}\n`);
  endSoon(exitCode.crashed);
}

process.on("uncaughtException", crash);
process.on("unhandledRejection", crash);
main().catch(crash);
