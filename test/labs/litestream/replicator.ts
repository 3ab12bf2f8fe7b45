import { appendFileSync, chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Names the executable of Litestream; without it, it is looked for on the PATH. */
export const litestreamVariable = "LITESTREAM";

/** Null: there is none on this machine. `go install github.com/benbjohnson/litestream/cmd/litestream@v0.5.18` builds it. */
export const litestream: string | null = process.env[litestreamVariable] ?? Bun.which("litestream");

/** The real Litestream beside a database, with a folder as its replica; what it says is in `litestream.log` there. */
export interface Replicator {
  /** Resolves when it follows the log: one that is told to end before that copies nothing any more. */
  start(): Promise<void>;
  /** Resolves when it has gone through the log once, from a moment after this call. */
  looked(): Promise<void>;
  /** Resolves when it has copied something. */
  copied(): Promise<void>;
  /** In order: it copies what is left. */
  stop(): Promise<void>;
  /** Why it copied the whole database, each time that it did. */
  readonly snapshots: readonly string[];
  readonly errors: readonly string[];
  /** @throws what it says when it fails */
  restore(to: string): Promise<void>;
}

interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly snap?: string;
  readonly reason?: string;
  readonly error?: string;
}

export function createReplicator(executable: string, folder: string, databasePath: string): Replicator {
  const config = join(folder, "litestream.yml");
  mkdirSync(folder, { recursive: true });
  // Its defaults, but for the log: at level debug it says what it copies, and why.
  writeFileSync(
    config,
    `dbs:
  - path: ${databasePath}
    replica:
      path: ${join(folder, "replica")}
logging:
  level: debug
  type: json
`,
  );
  chmodSync(config, 0o600);
  const snapshots: string[] = [];
  const errors: string[] = [];
  let child: Bun.Subprocess<"ignore", "pipe", "pipe"> | null = null;

  async function follow(stream: ReadableStream<Uint8Array>): Promise<void> {
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      text += decoder.decode(chunk, { stream: true });
      const lines = text.split("\n");
      text = lines.pop() ?? "";
      if (lines.length > 0) appendFileSync(join(folder, "litestream.log"), `${lines.join("\n")}\n`);
      for (const line of lines) if (line.startsWith("{")) note(JSON.parse(line) as LogLine);
    }
  }

  const waiting = new Set<{ msg: string; left: number; resolve(): void }>();

  function said(msg: string, times = 1): Promise<void> {
    return new Promise((resolve) => waiting.add({ msg, left: times, resolve }));
  }

  function note({ level, msg, snap, reason, error }: LogLine): void {
    for (const waiter of waiting) {
      if (waiter.msg !== msg) continue;
      waiter.left -= 1;
      if (waiter.left > 0) continue;
      waiting.delete(waiter);
      waiter.resolve();
    }
    if (msg === "sync" && snap === "true") snapshots.push(reason ?? "the first");
    if (level === "ERROR") errors.push(`${msg}: ${error ?? ""}`);
  }

  return {
    snapshots,
    errors,
    async start() {
      const follows = said("sync");
      child = Bun.spawn([executable, "replicate", "-config", config], {
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
      });
      void follow(child.stdout);
      void follow(child.stderr);
      await follows;
    },
    // It says so as a look begins: with the second, the first has ended.
    looked: () => said("sync", 2),
    copied: () => said("db sync"),
    async stop() {
      child?.kill("SIGTERM");
      await child?.exited;
    },
    async restore(to) {
      const command = [executable, "restore", "-config", config, "-o", to, "-integrity-check", "full", databasePath];
      const restoring = Bun.spawn(command, { stdout: "pipe", stderr: "pipe" });
      const said = await Promise.all([new Response(restoring.stdout).text(), new Response(restoring.stderr).text()]);
      if ((await restoring.exited) !== 0) throw new Error(`litestream restore: ${said.join("\n")}`);
    },
  };
}
