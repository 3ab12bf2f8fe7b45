import { join } from "node:path";

/** `postrider serve` as a separate process, on a free port unless one is given: for testing what signals do to it. */
export interface ServerProcess {
  /** Resolves with the first log line for this event, past or future. */
  logged(event: string): Promise<Record<string, unknown>>;
  kill(signal: NodeJS.Signals): void;
  /** The exit code; null after a kill. */
  readonly exited: Promise<number | null>;
}

const main = join(import.meta.dir, "../../src/main.ts");

const sources = [process.execPath, main];

export function startServerProcess(
  dataDir: string,
  env: Record<string, string> = {},
  program: readonly string[] = sources,
): ServerProcess {
  const child = Bun.spawn([...program, "serve"], {
    env: { ...process.env, POSTRIDER_DATA_DIR: dataDir, POSTRIDER_PORT: "0", POSTRIDER_LOG_FORMAT: "json", ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  const lines: Record<string, unknown>[] = [];
  let look = () => {};
  let ended: Error | null = null;

  async function read(): Promise<void> {
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) {
      text += decoder.decode(chunk, { stream: true });
      const whole = text.split("\n");
      text = whole.pop() ?? "";
      for (const line of whole) if (line.startsWith("{")) lines.push(JSON.parse(line));
      look();
    }
    ended = new Error(`The server ended: ${await new Response(child.stderr).text()}`);
    look();
  }
  void read();

  return {
    logged: (event) =>
      new Promise((resolve, reject) => {
        look = () => {
          const line = lines.find((line) => line.event === event);
          if (line) resolve(line);
          else if (ended) reject(ended);
        };
        look();
      }),
    kill: (signal) => child.kill(signal),
    exited: child.exited.then(() => child.exitCode),
  };
}
