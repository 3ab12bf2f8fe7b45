import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { SQL } from "bun";
import { administer, startDurableServer } from "../../../support/postgres-server.ts";
import { endWithUs, removeAtEnd } from "../cleanup.ts";
import { runBench, sharedOptions } from "../command.ts";
import { describeSurroundings, folderOnDisk } from "../machine.ts";
import { positive } from "../options.ts";
import { say } from "../output.ts";
import { machineLines } from "../report.ts";
import { root } from "../servers.ts";
import { dataIn, provideSeeded } from "./database.ts";

/** `bun run bench:move`: a data directory is moved to PostgreSQL and back, by the executable. */
const help = `Usage: bun run bench:move [options]

  --events 1000000    events, nearly each with a delivery and an attempt
  --server URL        a PostgreSQL server whose user may create databases; default: one of its own, with fsync
  --data-dir DIR      where the seeded database is; one that is there is used again, and stays
  --source            run src/main.ts instead of dist/postrider
  --no-gate           exit with 0 also when a bar is missed
`;

/** The bar, for each way. */
const mostMsPerEvent = 0.12;
const secrets = ["master-key", "session-secret", "operator-token"];

await runBench({ name: "bench:move", readOptions, run: benchMove });

function readOptions(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      events: { type: "string", default: "1000000" },
      server: { type: "string" },
      ...sharedOptions,
    },
  });
  if (values.help) return help;
  return {
    events: positive("events", values.events),
    server: values.server,
    source: values.source,
    dataDir: values["data-dir"],
    gate: !values["no-gate"],
  };
}

type Options = Exclude<ReturnType<typeof readOptions>, string>;

async function benchMove({ events, server: given, source, dataDir, gate }: Options): Promise<number> {
  const program = source ? [process.execPath, join(root, "src", "main.ts")] : [join(root, "dist", "postrider")];
  if (!existsSync(program.at(-1) ?? "")) throw new Error("There is no dist/postrider. Try: bun run build");
  const parent = dataDir ?? mkdtempSync(join(folderOnDisk(), "postrider-move-"));
  if (dataDir === undefined) removeAtEnd(parent);
  say(machineLines(await describeSurroundings(parent)));
  const { folder } = await provideSeeded(parent, events);
  const from = newFolder(parent, "from");
  cpSync(dataIn(folder), from, { recursive: true });
  const back = newFolder(parent, "back");
  for (const name of secrets) cpSync(join(from, name), join(back, name));

  const own = given === undefined ? await startDurableServer() : null;
  const database = `postrider_move_${process.pid}`;
  const server = own ?? {
    url: (name: string) => Object.assign(new URL(given ?? ""), { pathname: `/${name}` }).href,
  };
  try {
    await administer(server, `create database ${database} encoding 'UTF8' template template0`);
    const url = server.url(database);
    const there = await move(program, url, { POSTRIDER_DATA_DIR: from });
    say(`to PostgreSQL  ${there.text}; ${await sizeMib(url)} MiB there`);
    const again = await move(program, `sqlite:${back}`, { POSTRIDER_DATA_DIR: from, POSTRIDER_DATABASE_URL: url });
    say(`back           ${again.text}`);
    const most = (mostMsPerEvent * events) / 1000;
    const held = Math.max(there.seconds, again.seconds) <= most;
    say(`${held ? "HELD" : "MISSED"}: at most ${most.toFixed(0)} s each way`);
    return held || !gate ? 0 : 1;
  } finally {
    await administer(server, `drop database if exists ${database} with (force)`);
    await own?.remove();
  }
}

function newFolder(parent: string, name: string): string {
  const folder = join(parent, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { mode: 0o700 });
  removeAtEnd(folder);
  return folder;
}

async function move(
  program: readonly string[],
  to: string,
  env: Record<string, string>,
): Promise<{ seconds: number; text: string }> {
  const startedMs = performance.now();
  const child = Bun.spawn([...program, "move", "--to", to, "--json"], { env, stdout: "pipe", stderr: "inherit" });
  endWithUs(child);
  const said = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error(`postrider move ended with ${child.exitCode}`);
  const seconds = (performance.now() - startedMs) / 1000;
  const { events, rows, compared, miscounted } = JSON.parse(said);
  if (miscounted.length > 0) throw new Error(`These were counted otherwise: ${miscounted}`);
  const { cpuTime, maxRSS } = child.resourceUsage() ?? { cpuTime: { total: 0n }, maxRSS: 0 };
  return {
    seconds,
    text:
      `${seconds.toFixed(1)} s, ${Math.round(rows / seconds)} rows a second: ${events} events, ${rows} rows, ` +
      `${compared} compared in full; ${(Number(cpuTime.total) / 1e6).toFixed(1)} s of a core, ` +
      `peak ${Math.round(maxRSS / 2 ** 20)} MiB`,
  };
}

async function sizeMib(url: string): Promise<number> {
  const sql = new SQL(url, { max: 1 });
  const [row] = await sql.unsafe<{ mib: number }[]>(
    "select (pg_database_size(current_database()) / 1048576)::int as mib",
  );
  await sql.close();
  return row?.mib ?? 0;
}
