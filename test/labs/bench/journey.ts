import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { sign } from "../../../src/delivery/signature.ts";
import { dueDelivery, signerMaterial } from "../../support/due-delivery.ts";
import { makeFolder, runBench, sharedOptions } from "./command.ts";
import { asFastAsPossible, windowEvents } from "./generator.ts";
import {
  type Costs,
  costsOf,
  medianOf,
  type SubjectName,
  stagesOf,
  stageTable,
  variantTable,
} from "./journey-report.ts";
import { type VariantName, variantNames, variants } from "./journey-variants.ts";
import { describeSurroundings } from "./machine.ts";
import { ownCpuSeconds } from "./meter.ts";
import { positive } from "./options.ts";
import { say } from "./output.ts";
import { type PhaseResult, runPhase } from "./phase.ts";
import { proveEverythingIsOn } from "./proof.ts";
import { type Receiver, startReceiver } from "./receiver.ts";
import { machineLines, warnings } from "./report.ts";
import { type Server, startProduct, startRelay } from "./servers.ts";
import { createApi, createTenants } from "./tenants.ts";
import { watchedThreads } from "./threads.ts";

/**
 * `bun run bench:journey`: what each stage of an event costs in processor time. A profile says where one thread is; this says what
 * the program would save on all of its threads without a stage, by running it without: `journey-variants.ts`. Processor time of
 * an event, unlike the rate, is little changed by what else the machine does.
 */
const help = `Usage: bun run bench:journey [options]

What each stage of an event costs in processor time: stages are taken out of the program (its sources) one at a time.

  --rounds 3         each runs every variant once; figures are medians
  --seconds 10       of each run
  --warmup 5         seconds before, not measured
  --data-dir DIR     where the temporary data folder is made
`;

/** To measure what signing takes. */
const signatures = 20_000;
const signedBytes = 600;

await runBench({ name: "bench:journey", readOptions, run: benchJourney });

function readOptions(args: readonly string[]) {
  const { "data-dir": dataDir, help: isHelp } = sharedOptions;
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: "string", default: "3" },
      seconds: { type: "string", default: "10" },
      warmup: { type: "string", default: "5" },
      "data-dir": dataDir,
      help: isHelp,
    },
  });
  if (values.help) return help;
  return {
    rounds: positive("rounds", values.rounds),
    seconds: positive("seconds", values.seconds),
    warmupSeconds: positive("warmup", values.warmup),
    dataDir: values["data-dir"],
  };
}

type Options = Exclude<ReturnType<typeof readOptions>, string>;

/** One server, which takes part in all rounds: its code stays warm. */
interface Subject {
  readonly name: SubjectName;
  readonly server: Server;
  readonly delivers: boolean;
  /** Threads that the program itself starts. */
  readonly workers: number;
}

async function benchJourney(options: Options): Promise<number> {
  if (process.platform !== "linux") throw new Error("The bench reads /proc. Try: on Linux.");
  const folder = makeFolder(options.dataDir);
  say(machineLines(await describeSurroundings(folder)));
  say("");
  // First, while nothing else runs.
  const signingUs = measureSigning();
  const receiver = startReceiver();
  const subjects = [await startListener(receiver)];
  for (const name of variantNames) subjects.push(await startVariant(name, folder, receiver));

  const measured = new Map<SubjectName, Costs[]>(subjects.map(({ name }) => [name, []]));
  const results: PhaseResult[] = [];
  for (let round = 1; round <= options.rounds; round++) {
    for (const subject of subjects) {
      const { result, costs } = await run(subject, receiver, options, round);
      results.push(result);
      measured.get(subject.name)?.push(costs);
    }
  }
  receiver.close();
  await Promise.all(subjects.map(({ server }) => server.stop()));

  const costs = Object.fromEntries([...measured].map(([name, rounds]) => [name, medianOf(rounds)])) as Record<
    SubjectName,
    Costs
  >;
  say(`\n${variantTable(costs)}\n\n${stageTable(stagesOf(costs, signingUs))}`);
  for (const warning of warnings({ bare: [], full: results, half: undefined })) say(warning);
  return 0;
}

/** Processor time of what a delivery is signed with, µs. */
function measureSigning(): number {
  const material = signerMaterial();
  const { eventId } = dueDelivery();
  const content = { eventId, body: Buffer.alloc(signedBytes, "x"), timestampSeconds: Math.floor(Date.now() / 1000) };
  const before = ownCpuSeconds();
  for (let n = 0; n < signatures; n++) sign(material, content);
  return ((ownCpuSeconds() - before) * 1e6) / signatures;
}

async function startListener(receiver: Receiver): Promise<Subject> {
  return { name: "listener", server: await startRelay("trivial-relay.ts", receiver.port), delivers: true, workers: 0 };
}

async function startVariant(name: VariantName, folder: string, receiver: Receiver): Promise<Subject> {
  const dataDir = join(folder, name);
  mkdirSync(dataDir);
  const program = [process.execPath, join(import.meta.dir, "journey-server.ts"), name];
  const server = await startProduct({ dataDir, source: true, program });
  const api = createApi(server.port);
  const tenants = await createTenants(api, dataDir, [receiver.port]);
  const [first] = tenants;
  if (first === undefined) throw new Error("No tenant was created.");
  // It starts the thread that reads and copies the log: before the one that sends, so that their order is known.
  await api("GET", "/v1/tenants/webhooks/health", first.session);
  if (name === "all") await proveEverythingIsOn(api, first, receiver);
  const { delivers } = variants[name];
  const apiKeys = tenants.map(({ apiKey }) => apiKey);
  return { name, server: { ...server, apiKeys }, delivers, workers: delivers ? 2 : 1 };
}

async function run(
  { name, server, delivers, workers }: Subject,
  receiver: Receiver,
  { seconds, warmupSeconds }: Options,
  round: number,
): Promise<{ result: PhaseResult; costs: Costs }> {
  const threads = watchedThreads(server.pid);
  const label = `${name} ${round}`;
  // Where nothing is delivered, nothing is waited for.
  const window = delivers ? windowEvents : Number.POSITIVE_INFINITY;
  const result = await runPhase({ ...server, window }, receiver, {
    label,
    pace: () => asFastAsPossible,
    warmupSeconds,
    seconds,
    atEdge: threads.atEdge,
    ...(!delivers && { drainMs: 0 }),
  });
  refuseFaults(label, delivers, result);
  const costs = costsOf(result, threads.uses(), workers);
  say(`${label.padEnd(18)}${costs.rate.toFixed(0).padStart(6)}/s  ${costs.all.toFixed(1).padStart(6)} µs an event`);
  return { result, costs };
}

/** A variant that does more or less than it should would measure something else. */
function refuseFaults(label: string, delivers: boolean, { accepted, lost, duplicates, wrong, refused }: PhaseResult) {
  const astray = delivers ? lost : accepted - lost;
  if (astray + duplicates + wrong + refused === 0) return;
  throw new Error(
    `${label}: ${astray} events ${delivers ? "never came" : "came that should not"}, ${duplicates} came twice, ${wrong} wrong, ${refused} refused.`,
  );
}
