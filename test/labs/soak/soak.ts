import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { installCleanup, removeAtEnd } from "../bench/cleanup.ts";
import { nowUs, receiverPath, tenantCount } from "../bench/event.ts";
import { atRate, connectGenerator } from "../bench/generator.ts";
import { createLedger } from "../bench/ledger.ts";
import { describeSurroundings, folderOnDisk } from "../bench/machine.ts";
import { positive } from "../bench/options.ts";
import { say } from "../bench/output.ts";
import { startReceiver } from "../bench/receiver.ts";
import { barLine, machineLines, mb, ms } from "../bench/report.ts";
import { makeDataDir, root, type Server, startProduct } from "../bench/servers.ts";
import { type Api, createApi, createTenants, type Tenant } from "../bench/tenants.ts";
import { createBooks, repeat } from "./books.ts";
import { startHostileReceivers } from "./hostile.ts";
import { judgeSoak } from "./judge.ts";
import { drawPlot } from "./plot.ts";
import { createSampler, type Sample } from "./sampler.ts";
import { churn, read, replay, type VisitorDeps, watch } from "./visitors.ts";

/**
 * `bun run soak --minutes N`: everything at once, for long, on the real server. Events at a steady rate from 64 accounts,
 * one webhook in ten hostile; accounts that come and go with their keys rotated, streams that reconnect, lists, replays.
 * The exit code is 0 when every bar holds.
 */
const sampleMs = 5_000;
const churners = 2;
const streams = 16;
const readers = 2;
const hostileEvery = 10;
/** Events a second for each hostile webhook. */
const hostileRate = 1;
/** What the log says of them; any other warning is a fault. */
const ofHostileWebhooks = /"event":"webhook\.(?:more_)?failing"/;
const refreshMs = 60 * 60_000;
const drainMs = 60_000;
const drainPollMs = 100;

const help = `Usage: bun run soak [options]

  --minutes 20     how long
  --rate 1500      events a second, about half of what two cores take with all the rest
  --source         run src/main.ts instead of dist/postrider
  --data-dir DIR   where the temporary data folder is made (2 KB for each event)
`;

installCleanup();
try {
  process.exit(await soak(process.argv.slice(2)));
} catch (error) {
  process.stderr.write(`soak: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exit(2);
}

async function soak(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: "string", default: "20" },
      rate: { type: "string", default: "1500" },
      source: { type: "boolean", default: false },
      "data-dir": { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(help);
    return 0;
  }
  if (process.platform !== "linux") throw new Error("The soak reads /proc. Try: on Linux.");
  const minutes = positive("minutes", values.minutes);
  const rate = positive("rate", values.rate);
  const folder = makeDataDir(resolve(values["data-dir"] ?? folderOnDisk()));
  removeAtEnd(folder);
  say(machineLines(await describeSurroundings(folder)));
  const server = await startProduct({ dataDir: folder, source: values.source, expected: ofHostileWebhooks });
  const { bars, samples } = await load(server, folder, minutes, rate);
  say("");
  for (const bar of bars) say(barLine(bar));
  say(`plot ${writePlot(samples, `${minutes} minutes at ${rate} events a second`)}`);
  return bars.some(({ passed }) => !passed) ? 1 : 0;
}

async function load(server: Server, folder: string, minutes: number, rate: number) {
  const api = createApi(server.port);
  const receiver = startReceiver();
  const churnReceiver = startReceiver();
  const hostile = await startHostileReceivers();
  const isHostile = (n: number) => n % hostileEvery === hostileEvery - 1;
  const urlOf = (n: number) =>
    isHostile(n) ? hostile.urlOf(Math.floor(n / hostileEvery)) : `http://127.0.0.1:${receiver.port}${receiverPath(n)}`;
  const tenants = await createTenants(api, folder, [receiver.port], urlOf);
  const goodOnes = tenants.flatMap((_, n) => (isHostile(n) ? [] : [n]));
  const good = goodOnes.map((n) => tenants[n] as Tenant);
  const bad = tenants.filter((_, n) => isHostile(n));
  say(
    `load      ${minutes} min, ${rate} events/s from ${good.length} of ${tenantCount} accounts, ${bad.length} hostile webhooks with ${hostileRate}/s each, ${churners} churners, ${streams} streams, ${readers} readers, replays`,
  );

  const ledger = createLedger(1);
  const apiKeys = good.map(({ apiKey }) => apiKey);
  const tenantOf = (connection: number) => goodOnes[connection] ?? 0;
  const generator = await connectGenerator(server.port, apiKeys, { tenantOf, window: Number.POSITIVE_INFINITY });
  receiver.attach(ledger, () => {});
  const books = createBooks();
  const sampler = createSampler(server.pid, join(folder, "data"), ledger);
  let over = false;
  const visitors: VisitorDeps = { api, books, isOver: () => over };
  const any = () => good[Math.floor(Math.random() * good.length)] as Tenant;
  generator.start(ledger, atRate(rate, nowUs()));
  const work = [
    ...Array.from({ length: churners }, () =>
      churn(visitors, `http://127.0.0.1:${churnReceiver.port}${receiverPath(0)}`),
    ),
    ...Array.from({ length: streams }, (_, n) => watch(visitors, () => (good[n % 8] as Tenant).session)),
    ...Array.from({ length: readers }, () => read(visitors, any)),
    replay(visitors, any),
    ...bad.map((tenant) => feed(visitors, tenant)),
  ];
  const refreshing = setInterval(() => void refresh(visitors, tenants), refreshMs);

  for (let next = performance.now() + sampleMs, end = next + minutes * 60_000; next < end; next += sampleMs) {
    await Promise.race([Bun.sleep(Math.max(0, next - performance.now())), generator.broken]);
    say(progressLine(sampler.take()));
  }
  over = true;
  generator.stop();
  clearInterval(refreshing);
  const giveUp = performance.now() + drainMs;
  while (ledger.lost() > 0 && performance.now() < giveUp) await Bun.sleep(drainPollMs);
  await Promise.all(work);
  generator.close();
  const serverFaults = await countServerFaults(api);
  const survived = server.isRunning();
  await server.stop();
  say(
    `\nsent ${ledger.accepted}, received again by replays ${ledger.duplicates}, requests to hostile receivers ${hostile.requests()}, server's peak ${mb(server.meter.peakBytes())}`,
  );
  say([...books.counts].map(([kind, count]) => `${kind} ${count}`).join(", "));
  for (const one of [receiver, churnReceiver, hostile]) one.close();
  const { samples } = sampler;
  return { samples, bars: judgeSoak({ samples, ledger, books, said: server.said(), survived, serverFaults }) };
}

/** Events for a hostile webhook. */
function feed({ api, books, isOver }: VisitorDeps, { apiKey }: Tenant): Promise<void> {
  const send = () =>
    books.run("events for hostile webhooks", async () => {
      await api("POST", "/v1/ingest", apiKey, { payload: { for: "a hostile receiver" } });
    });
  return repeat(isOver, () => 1000 / hostileRate, send);
}

function refresh({ api, books }: VisitorDeps, tenants: readonly Tenant[]): Promise<void> {
  return books.run("sessions refreshed", async () => {
    for (const tenant of tenants) {
      tenant.session = (await api<{ token: string }>("POST", "/v1/tenants/auth/refresh", tenant.session)).token;
    }
  });
}

async function countServerFaults({ base }: Api): Promise<number> {
  const text = await (await fetch(`${base}/metrics`)).text();
  const counts = text.matchAll(/^postrider_http_requests_total\{[^}]*status="5\d\d"[^}]*\} (\d+)$/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

function progressLine(sample: Sample): string {
  return [
    `${sample.minutes.toFixed(1).padStart(6)} min`,
    `resident ${mb(sample.residentBytes)}`,
    `descriptors ${sample.descriptors}`,
    `threads ${sample.threads}`,
    `log ${mb(sample.walBytes)}`,
    `database ${mb(sample.databaseBytes)}`,
    `p99 ${ms(sample.ingestionP99Ms)}, to arrival ${ms(sample.endToEndP99Ms)}`,
    `accepted ${sample.accepted}`,
  ].join("  ");
}

function writePlot(samples: readonly Sample[], title: string): string {
  const panel = (name: string, pick: (sample: Sample) => number) => ({
    title: name,
    points: samples.map((sample) => ({ x: sample.minutes, y: pick(sample) })).filter(({ y }) => !Number.isNaN(y)),
  });
  const folder = join(root, "test-output");
  mkdirSync(folder, { recursive: true });
  const path = join(folder, "soak.svg");
  const svg = drawPlot(title, [
    panel("resident memory, MB", ({ residentBytes }) => residentBytes / 1e6),
    panel("descriptors", ({ descriptors }) => descriptors),
    panel("write-ahead log, MB", ({ walBytes }) => walBytes / 1e6),
    panel("p99 of ingestion, ms", ({ ingestionP99Ms }) => ingestionP99Ms),
    panel("p99 from due to arrival, ms", ({ endToEndP99Ms }) => endToEndP99Ms),
  ]);
  writeFileSync(path, svg);
  return path;
}
