import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { makeFolder, runBench, sayBars, sharedOptions } from "./command.ts";
import { startDatabase, startNode } from "./database.ts";
import { tenantCount } from "./event.ts";
import { asFastAsPossible, type GeneratorOptions } from "./generator.ts";
import { describeSurroundings, folderOnDisk } from "./machine.ts";
import { positive } from "./options.ts";
import { say } from "./output.ts";
import { runPhase } from "./phase.ts";
import { type DeliveryCounter, startDeliveryCounter, startReceiver } from "./receiver.ts";
import { type Bar, bar, machineLines, ms, phaseLine } from "./report.ts";
import { createApi, createTenants } from "./tenants.ts";
import { watchedThreads } from "./threads.ts";

/**
 * `bun run bench:saturation`: whether an event arrives at once although clients post as fast as they are answered. Nothing but
 * the server holds them back: unlike in `bun run bench`, any number of events may be accepted and not yet delivered.
 */
const help = `Usage: bun run bench:saturation [options]

  --seconds 20       of each load
  --warmup 5         seconds before, not measured
  --webhooks 1       of each account, 3 at most; what is measured is the way to the first
  --only 1000        loads whose name contains this
  --postgres         keep the events in a PostgreSQL of its own, with fsync on, on this machine
  --data-dir DIR     where the temporary data folder is made
  --source           run src/main.ts instead of dist/postrider
  --no-gate          exit with 0 also when a bar is missed
`;

/** The bar. */
const mostEndToEndMs = 250;

/** For so long deliveries to the other webhooks are waited for, once those to the first have come. */
const othersMs = 15_000;
const othersPollMs = 50;

interface Load {
  readonly label: string;
  readonly clients: number;
  /** Events of a batch; 0: single events. */
  readonly batch: number;
}

const loads: readonly Load[] = [
  { label: "64 clients", clients: 64, batch: 0 },
  { label: "1,000 clients", clients: 1_000, batch: 0 },
  { label: "64 × 20", clients: 64, batch: 20 },
  { label: "1,000 × 20", clients: 1_000, batch: 20 },
];

await runBench({ name: "bench:saturation", readOptions, run: benchSaturation });

function readOptions(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: "string", default: "20" },
      warmup: { type: "string", default: "5" },
      webhooks: { type: "string", default: "1" },
      only: { type: "string", default: "" },
      postgres: { type: "boolean", default: false },
      ...sharedOptions,
    },
  });
  if (values.help) return help;
  return {
    seconds: positive("seconds", values.seconds),
    warmupSeconds: positive("warmup", values.warmup),
    webhooks: positive("webhooks", values.webhooks),
    only: values.only,
    postgres: values.postgres,
    dataDir: values["data-dir"],
    source: values.source,
    gate: !values["no-gate"],
  };
}

type Options = Exclude<ReturnType<typeof readOptions>, string>;

async function benchSaturation({
  seconds,
  warmupSeconds,
  webhooks,
  only,
  postgres,
  dataDir: parent,
  source,
  gate,
}: Options): Promise<number> {
  if (process.platform !== "linux") throw new Error("The bench reads /proc. Try: on Linux.");
  const dataDir = makeFolder(parent);
  say(machineLines(await describeSurroundings(dataDir)));
  say("");
  const receiver = startReceiver();
  const others = Array.from({ length: webhooks - 1 }, startDeliveryCounter);
  const ports = [receiver, ...others].map(({ port }) => port);
  const database = postgres ? await startDatabase(resolve(parent ?? folderOnDisk())) : undefined;
  const name = "server";
  const server = await startNode({ folder: dataDir, name, source, ...(database && { databaseUrl: database.url }) });
  const tenants = await createTenants(createApi(server.port), join(dataDir, name), ports);
  const keys = tenants.map(({ apiKey }) => apiKey);
  const bars: Bar[] = [];
  for (const { label, clients, batch } of loads.filter((load) => load.label.includes(only))) {
    const apiKeys = Array.from({ length: clients }, (_, client) => keys[client % tenantCount] ?? "");
    const options: GeneratorOptions = {
      tenantOf: (client) => client % tenantCount,
      window: Number.POSITIVE_INFINITY,
      batch,
    };
    const threads = watchedThreads(server.pid);
    const result = await runPhase({ ...server, ...options, apiKeys }, receiver, {
      label,
      pace: () => asFastAsPossible,
      warmupSeconds,
      seconds,
      drainMs: 120_000,
      atEdge: threads.atEdge,
    });
    say(phaseLine(label, result));
    say(threads.line());
    say(`                202 to delivery p50 ${ms(result.delayP50Ms)} p99 ${ms(result.delayP99Ms)}`);
    const p99 = result.endToEndP99Ms;
    bars.push(bar(`${label}: end to end p99`, p99 < mostEndToEndMs, ms(p99), `under ${mostEndToEndMs} ms`));
    const missed = await countMissed(others, result.accepted);
    const faults = result.lost + result.wrong + result.refused + missed;
    bars.push(bar(`${label}: lost, changed or refused`, faults === 0, String(faults), "none"));
  }
  for (const { close } of [receiver, ...others]) close();
  await server.stop();
  await database?.server.remove();
  say("");
  return sayBars(bars, gate);
}

/** @returns how many deliveries of so many events have not come to the other webhooks */
async function countMissed(others: readonly DeliveryCounter[], events: number): Promise<number> {
  const endMs = performance.now() + othersMs;
  let missed = others.length * events;
  for (;;) {
    missed -= others.reduce((sum, { take }) => sum + take(), 0);
    if (missed <= 0 || performance.now() > endMs) return Math.max(missed, 0);
    await Bun.sleep(othersPollMs);
  }
}
