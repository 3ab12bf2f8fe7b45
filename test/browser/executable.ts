import { afterAll } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The server as its users have it: the compiled executable, in a folder of its own, on a free port. */
export interface Executable {
  readonly url: string;
  /** The next line of the log that tells of `event`; each is told once. */
  logged(event: string): Promise<LogLine>;
  /**
   * Ends it as a service manager does, and starts it again at the same address.
   * @param meanwhile what happens to its database, while nobody has it open
   */
  restart(meanwhile?: (database: string) => void): Promise<void>;
  /** What its operator signs in with. */
  operatorToken(): string;
}

export type LogLine = Readonly<Record<string, unknown>> & { event: string };

const executable = join(import.meta.dir, "../../dist", process.platform === "win32" ? "postrider.exe" : "postrider");

/** As in `browser.ts`, and of the server: it may be the first one that the machine starts. */
const patienceMs = 60_000;

/**
 * For the top of a test file; ends the server after its last test.
 * @param settings as they stand in the environment
 */
export async function startExecutable(settings: Readonly<Record<string, string>> = {}): Promise<Executable> {
  if (!existsSync(executable)) throw new Error(`There is no ${executable}. Try: npm run build`);
  const folder = mkdtempSync(join(tmpdir(), "postrider-browser-"));
  let log = createLogReader();
  let stop = launch("0");

  function launch(port: string): () => Promise<void> {
    const child = Bun.spawn([executable, "serve", "--port", port], {
      cwd: folder,
      // Nothing of the environment, least of all its settings; Windows needs its own.
      env: { ...settings, PATH: "", SystemRoot: process.env.SystemRoot ?? "", TMPDIR: folder, TEMP: folder },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
    });
    const reading = log.read(child.stdout);
    return async () => {
      child.kill("SIGTERM");
      await Promise.all([child.exited, reading]);
    };
  }

  afterAll(async () => {
    await stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const { url } = await log.next("server.started");
  return {
    url: String(url),
    logged: (event) => log.next(event),
    async restart(meanwhile) {
      await stop();
      meanwhile?.(join(folder, "postrider-data", "postrider.db"));
      log = createLogReader();
      stop = launch(new URL(String(url)).port);
      await log.next("server.started");
    },
    operatorToken: () => readFileSync(join(folder, "postrider-data", "operator-token"), "utf8").trim(),
  };
}

function createLogReader() {
  const untold: LogLine[] = [];
  const waiting = new Set<() => void>();
  let ended = false;

  async function read(output: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
    let rest = "";
    for await (const chunk of output.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) untold.push(JSON.parse(line));
      for (const look of [...waiting]) look();
    }
    ended = true;
    for (const look of [...waiting]) look();
  }

  function next(event: string): Promise<LogLine> {
    return new Promise((resolve, reject) => {
      const fail = (why: string) => finish(() => reject(new Error(`${why}: ${event}. ${JSON.stringify(untold)}`)));
      const timer = setTimeout(() => fail("The log does not tell"), patienceMs);
      function finish(settle: () => void): void {
        clearTimeout(timer);
        waiting.delete(look);
        settle();
      }
      function look(): void {
        const i = untold.findIndex((line) => line.event === event);
        const [line] = i < 0 ? [] : untold.splice(i, 1);
        if (line) finish(() => resolve(line));
        else if (ended) fail("The server ended before it told");
      }
      waiting.add(look);
      look();
    });
  }

  return { read, next };
}
