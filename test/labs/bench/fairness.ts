import { parseArgs } from "node:util";
import { floodWithBatches } from "./batch-flood.ts";
import { makeFolder, runBench, sayBars, sharedOptions } from "./command.ts";
import { receiverPath, tenantCount } from "./event.ts";
import { type DeadPair, deadLine, type Greedy, greedyLine, judgeFairness, outageLine } from "./fairness-report.ts";
import { asFastAsPossible, atRate } from "./generator.ts";
import { watchInFlight } from "./in-flight.ts";
import { describeSurroundings } from "./machine.ts";
import { seedNeighbourhood } from "./neighbours.ts";
import { positive } from "./options.ts";
import { say } from "./output.ts";
import { type PhaseResult, runPhase } from "./phase.ts";
import { type Receiver, startReceiver } from "./receiver.ts";
import { machineLines } from "./report.ts";
import { type Server, startProduct, startSilentReceiver } from "./servers.ts";

/**
 * `bun run bench:fairness`: what one tenant suffers from its neighbours (rules, sections 6 and 8).
 *
 * Dead neighbours: 1,000 webhooks that take every request and never answer, each with a backlog; beside them a tenant
 * whose webhook answers, at a steady rate and then as fast as it can. In alternating pairs with a server on which the
 * 1,000 have nothing to deliver. The measured time begins with the first attempts that hang, and holds the moment 10 s
 * later in which they all end.
 *
 * Outage: 1,000 webhooks that answer, each with a backlog, hang all at once, as when what they have in common goes down. The
 * measured time begins with that, and lasts until their attempts have timed out; beside them 64 tenants send at a steady rate.
 *
 * Greedy neighbour: a tenant that posts as fast as it can, single events and then batches, beside one that posts ten
 * events a second.
 */
const help = `Usage: bun run bench:fairness [options]

  --part dead|outage|single|batch   only one part; default: all
  --pairs 5           pairs of runs, without and with dead neighbours
  --seconds 12        measured seconds at the steady rate
  --full-seconds 5    measured seconds at full speed
  --greedy-seconds 30 measured seconds beside a greedy neighbour
  --source            run src/main.ts instead of dist/postrider
  --data-dir DIR      where the temporary data folders are made
  --no-gate           exit with 0 also when a bar is missed
`;

const deadWebhooks = 1_000;
/** More than are tried and tried again while it is measured. */
const backlogOfEach = 40;
/** More than goes out before they hang. */
const backlogOfAnswering = 100;
/** Attempts time out after ten. */
const outageSeconds = 12;
/** What is new is told from a backlog by its age. */
const backlogAgeMs = 11_000;
const steadyRate = 200;
const warmupSeconds = 2;
const connections = 64;
const smallRate = 10;
const smallConnections = 2;

const parts = ["dead", "outage", "single", "batch"] as const;
type Part = (typeof parts)[number];

await runBench({ name: "fairness", readOptions, run: fairness });

function readOptions(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      part: { type: "string" },
      pairs: { type: "string", default: "5" },
      seconds: { type: "string", default: "12" },
      "full-seconds": { type: "string", default: "5" },
      "greedy-seconds": { type: "string", default: "30" },
      ...sharedOptions,
    },
  });
  if (values.help) return help;
  if (values.part !== undefined && !parts.some((part) => part === values.part)) {
    throw new Error(`--part takes ${parts.join(", ")}.`);
  }
  return {
    does: (part: Part) => values.part === undefined || values.part === part,
    pairs: positive("pairs", values.pairs),
    seconds: positive("seconds", values.seconds),
    fullSeconds: positive("full-seconds", values["full-seconds"]),
    greedySeconds: positive("greedy-seconds", values["greedy-seconds"]),
    source: values.source,
    parent: values["data-dir"],
    gate: !values["no-gate"],
  };
}

type Options = Exclude<ReturnType<typeof readOptions>, string>;

async function fairness(options: Options): Promise<number> {
  if (process.platform !== "linux") throw new Error("The bench reads /proc. Try: on Linux.");
  say(machineLines(await describeSurroundings(makeFolder(options.parent))));
  const dead = options.does("dead") ? await measureDead(options) : [];
  const outage = options.does("outage") ? await measureOutage(options) : null;
  const greedy: Greedy[] = [];
  for (const part of ["single", "batch"] as const)
    if (options.does(part)) greedy.push(await measureGreedy(options, part));
  const bars = judgeFairness(dead, outage, greedy);
  say("");
  return sayBars(bars, options.gate);
}

async function measureDead(options: Options): Promise<DeadPair[]> {
  const receiver = startReceiver();
  const silent = await startSilentReceiver();
  const healthy = `http://127.0.0.1:${receiver.port}${receiverPath(0)}`;
  const sides = await Promise.all(
    [0, backlogOfEach].map(async (backlog) => {
      const folder = makeFolder(options.parent);
      const crowdUrl = (n: number) => `http://127.0.0.1:${silent.port}/dead/${n}`;
      const [apiKey = ""] = await seedNeighbourhood(folder, {
        crowd: deadWebhooks,
        crowdUrl,
        backlog,
        senders: [healthy],
      });
      return { folder, apiKey };
    }),
  );
  say(
    `\n${deadWebhooks} dead webhooks with ${backlogOfEach} events each; the healthy tenant sends ${steadyRate}/s for ${options.seconds} s, then full speed for ${options.fullSeconds} s`,
  );
  const pairs: DeadPair[] = [];
  for (let pair = 1; pair <= options.pairs; pair++) {
    const runs = [];
    for (const [i, side] of sides.entries()) {
      const run = await runHealthy(options, receiver, side, i === 0 ? "without" : "with dead");
      say(deadLine(`${i === 0 ? "without" : "with"} ${pair}`, run));
      runs.push(run);
    }
    const [without, beside] = runs;
    if (without && beside) pairs.push({ without, beside });
  }
  receiver.close();
  await silent.stop();
  return pairs;
}

async function runHealthy(
  { source, seconds, fullSeconds }: Options,
  receiver: Receiver,
  { folder, apiKey }: { folder: string; apiKey: string },
  label: string,
) {
  const server = await startProduct({ dataDir: folder, source, profileDir: undefined });
  const inFlight = watchInFlight(server.port);
  const target = { ...server, apiKeys: Array.from({ length: connections }, () => apiKey), tenantOf: () => 0 };
  const pace = (startUs: number) => atRate(steadyRate, startUs);
  const steady = await runPhase(target, receiver, { label: `${label}, steady`, pace, warmupSeconds, seconds });
  const full = await runPhase(target, receiver, {
    label: `${label}, full speed`,
    pace: () => asFastAsPossible,
    warmupSeconds: 1,
    seconds: fullSeconds,
  });
  const result = { steady, full, peakBytes: server.meter.peakBytes(), inFlight: inFlight.stop() };
  // Not in order: that would wait for what hangs.
  await server.kill();
  return result;
}

async function measureOutage({ parent, source }: Options): Promise<PhaseResult> {
  const receiver = startReceiver();
  const silent = await startSilentReceiver("until-told");
  const folder = makeFolder(parent);
  const apiKeys = await seedNeighbourhood(folder, {
    crowd: deadWebhooks,
    crowdUrl: (n) => `http://127.0.0.1:${silent.port}/crowd/${n}`,
    backlog: backlogOfAnswering,
    senders: Array.from({ length: tenantCount }, (_, n) => `http://127.0.0.1:${receiver.port}${receiverPath(n)}`),
  });
  await Bun.sleep(backlogAgeMs);
  const server = await startProduct({ dataDir: folder, source, profileDir: undefined, expected: /webhook\.failing/ });
  const load = { apiKeys, tenantOf: (client: number) => client, window: Number.POSITIVE_INFINITY };
  const run = await runPhase({ ...server, ...load }, receiver, {
    label: "outage",
    pace: (startUs) => atRate(steadyRate, startUs),
    warmupSeconds: 3 * warmupSeconds,
    seconds: outageSeconds,
    atEdge: silent.hang,
  });
  say(outageLine(run));
  await server.kill();
  receiver.close();
  await silent.stop();
  return run;
}

/** One after the other on a fresh server: the small tenant alone, then beside the greedy one. */
async function measureGreedy(options: Options, mode: "single" | "batch"): Promise<Greedy> {
  const receivers = [startReceiver(), startReceiver()] as const;
  const folder = makeFolder(options.parent);
  const senders = receivers.map(({ port }) => `http://127.0.0.1:${port}${receiverPath(0)}`);
  const nobody = { crowd: 0, crowdUrl: () => "", backlog: 0 };
  const [smallKey = "", greedyKey = ""] = await seedNeighbourhood(folder, { ...nobody, senders });
  const server = await startProduct({ dataDir: folder, source: options.source, profileDir: undefined });
  const small = { ...server, apiKeys: Array.from({ length: smallConnections }, () => smallKey), tenantOf: () => 0 };
  const seconds = options.greedySeconds;
  const runSmall = (label: string, forSeconds: number) =>
    runPhase(small, receivers[0], {
      label,
      pace: (startUs) => atRate(smallRate, startUs),
      warmupSeconds,
      seconds: forSeconds,
    });

  await warmUp(server, greedyKey, receivers[1]);
  const alone = await runSmall("small one alone", seconds / 2);
  const flood = mode === "single" ? floodWithSingles : floodWithBatches;
  const [beside, greedy] = await Promise.all([
    runSmall(`beside ${mode}`, seconds),
    flood({ server, apiKey: greedyKey, receiver: receivers[1], seconds, warmupSeconds }),
  ]);
  const result: Greedy = { mode, alone, beside, ...greedy, peakBytes: server.meter.peakBytes() };
  say(greedyLine(result));
  // Its backlog would be waited for.
  await server.kill();
  for (const receiver of receivers) receiver.close();
  return result;
}

/** A server whose code has never run is slower than any neighbour makes it. */
async function warmUp(server: Server, apiKey: string, receiver: Receiver): Promise<PhaseResult> {
  const target = { ...server, apiKeys: Array.from({ length: connections }, () => apiKey), tenantOf: () => 0 };
  return runPhase(target, receiver, { label: "warm-up", pace: () => asFastAsPossible, warmupSeconds: 1, seconds: 3 });
}

async function floodWithSingles({
  server,
  apiKey,
  receiver,
  seconds,
  warmupSeconds,
}: Parameters<typeof floodWithBatches>[0]) {
  const apiKeys = Array.from({ length: connections }, () => apiKey);
  const target = { ...server, apiKeys, tenantOf: () => 0, window: Number.POSITIVE_INFINITY };
  const run = await runPhase(target, receiver, {
    label: "greedy",
    pace: () => asFastAsPossible,
    warmupSeconds,
    seconds,
    drainMs: 0,
  });
  const { accepted, wrong, refused } = run;
  return { accepted, acceptedRate: accepted / (seconds + warmupSeconds), faults: wrong + refused };
}
