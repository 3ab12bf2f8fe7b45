import { Database } from "bun:sqlite";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { databaseFile } from "../../../src/store/sqlite/open.ts";
import { makeFolder, runBench, sharedOptions } from "./command.ts";
import { describeSurroundings } from "./machine.ts";
import { positive } from "./options.ts";
import { say, showProgress } from "./output.ts";
import { machineLines } from "./report.ts";
import { type Server, startProduct } from "./servers.ts";
import { createApi, loginTenant, type Tenant } from "./tenants.ts";

/** `bun run bench:disk`: what an event costs on disk, stored and written, by how much its receiver answers. */
const help = `Usage: bun run bench:disk [options]

  --seconds 60       of each receiver
  --rate 200         events a second
  --payload 300      bytes of each
  --answers 0,4096   bytes that receivers answer
  --settle 150       seconds until the bodies of answers have gone that nobody reads
  --data-dir DIR     where the temporary data folder is made
  --source           run src/main.ts instead of dist/postrider
`;

await runBench({ name: "bench:disk", readOptions, run: benchDisk });

function readOptions(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: "string", default: "60" },
      rate: { type: "string", default: "200" },
      payload: { type: "string", default: "300" },
      answers: { type: "string", default: "0,4096" },
      settle: { type: "string", default: "150" },
      ...sharedOptions,
    },
  });
  if (values.help) return help;
  return {
    seconds: positive("seconds", values.seconds),
    rate: positive("rate", values.rate),
    payloadBytes: positive("payload", values.payload),
    answers: values.answers.split(",").map(Number),
    settleSeconds: positive("settle", values.settle),
    dataDir: values["data-dir"],
    source: values.source,
  };
}

type Options = Exclude<ReturnType<typeof readOptions>, string>;

async function benchDisk(options: Options): Promise<number> {
  const parent = makeFolder(options.dataDir);
  say(machineLines(await describeSurroundings(parent)));
  say(
    `settings  ${options.rate} events/s of ${options.payloadBytes} bytes for ${options.seconds} s, one account, one webhook`,
  );
  say("");
  say("answer       stored          used          file     written");
  for (const answerBytes of options.answers) await measure(options, answerBytes);
  return 0;
}

async function measure(options: Options, answerBytes: number): Promise<void> {
  const folder = makeFolder(options.dataDir);
  const body = "x".repeat(answerBytes);
  let delivered = 0;
  const receiver = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      await request.arrayBuffer();
      delivered += 1;
      return new Response(body);
    },
  });
  const server = await startProduct({ dataDir: folder, source: options.source });
  const api = createApi(server.port);
  const tenant = await loginTenant(api);
  await allowMany(api, folder, tenant);
  await api("PUT", "/v1/tenants/webhooks", tenant.session, [{ webhook_url: `http://127.0.0.1:${receiver.port}/` }]);
  const before = writtenBy(server);
  const events = await ingest(options, api.base, tenant);
  while (delivered < events) await Bun.sleep(100);
  const written = writtenBy(server) - before;
  showProgress(`answers of ${answerBytes} bytes: waiting until the bodies have gone that nobody reads`);
  await Bun.sleep(options.settleSeconds * 1_000);
  await server.stop();
  receiver.stop(true);
  const { used, file } = sizes(join(folder, "data", databaseFile));
  const each = (bytes: number) => `${Math.round(bytes / events)} B`.padStart(12);
  say(`${`${answerBytes} B`.padEnd(8)} ${String(events).padStart(10)} ${each(used)} ${each(file)} ${each(written)}`);
}

async function allowMany(api: ReturnType<typeof createApi>, folder: string, { id }: Tenant): Promise<void> {
  const operatorToken = readFileSync(join(folder, "data", "operator-token"), "utf8").trim();
  await api("PUT", `/operator/tenants/${id}/tier`, operatorToken, { tier: "enterprise" });
}

/** At an even rate, whatever the answers take. @returns how many were accepted */
async function ingest({ seconds, rate, payloadBytes }: Options, base: string, { apiKey }: Tenant): Promise<number> {
  const shell = '{"payload":{"event_type":"bench.disk","text":""}}';
  const text = "y".repeat(Math.max(0, payloadBytes - '{"event_type":"bench.disk","text":""}'.length));
  const body = shell.replace('""}}', `"${text}"}}`);
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${apiKey}` };
  const count = Math.round(seconds * rate);
  const startMs = performance.now();
  const answers: Promise<void>[] = [];
  for (let n = 0; n < count; n++) {
    const waitMs = startMs + (n * 1_000) / rate - performance.now();
    if (waitMs > 1) await Bun.sleep(waitMs);
    answers.push(
      fetch(`${base}/v1/ingest`, { method: "POST", headers, body }).then(async (response) => {
        if (response.status !== 202) throw new Error(`POST /v1/ingest: ${response.status} ${await response.text()}`);
        await response.arrayBuffer();
      }),
    );
  }
  await Promise.all(answers);
  return count;
}

/** What its process has had written to disk. */
function writtenBy({ pid }: Server): number {
  const [, bytes] = /^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, "utf8")) ?? [];
  if (bytes === undefined) throw new Error("The bench reads /proc. Try: on Linux.");
  return Number(bytes);
}

function sizes(path: string): { used: number; file: number } {
  const client = new Database(path, { readonly: true });
  const found = client
    .query<{ used: number; file: number }, []>(
      `select (page_count - freelist_count) * page_size as used, page_count * page_size as file
       from pragma_page_count, pragma_freelist_count, pragma_page_size`,
    )
    .get();
  client.close();
  return found ?? { used: 0, file: 0 };
}
