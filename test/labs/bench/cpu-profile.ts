import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/**
 * Sums up a profile that `bun --cpu-prof` wrote. Its sampler looks once a millisecond and sees only code that runs in or
 * below JavaScript (a commit counts, with its fsync); what is missing of the time is the event loop itself: reading and
 * writing sockets, parsing HTTP, waiting.
 */
interface CpuProfile {
  nodes: ProfileNode[];
  /** Microseconds. */
  startTime: number;
  endTime: number;
  samples: number[];
  timeDeltas: number[];
}

interface ProfileNode {
  id: number;
  callFrame: { functionName: string; url: string; lineNumber: number };
  children?: number[];
}

/** What the innermost frame with a known place says about a sample. */
const subsystems: readonly (readonly [RegExp, string])[] = [
  [/^commitNow .*store\/sqlite/, "commit (fsync)"],
  [/store\/sqlite\/(credentials|held-keys)/, "API key and signing key SQL"],
  [/store\/sqlite\/acceptance/, "accept SQL"],
  [/store\/sqlite\/(deliveries|lines)/, "settle SQL"],
  // Shared by the jobs of the writer: what called them counts.
  [/store\/sqlite\/(held-tenants|connection|failure-ledger)|src\/domain\/|store\/latency|bun:sqlite|drizzle-orm/, ""],
  [/store\/sqlite\/writer/, "writer"],
  [/store\//, "other SQL"],
  [/delivery\/(signature|signers|request)/, "build and sign"],
  [/delivery\/announce|src\/stream\//, "announce and stream"],
  [/stat-recorder|http\/metrics|prom-client/, "metrics and statistics"],
  [/delivery\/sender/, "messages to and from the sender"],
  [/delivery\/network\//, "HTTP out"],
  [/src\/delivery\//, "dispatch"],
  [/src\/(events|http|accounts)\/|src\/api\.ts|elysia|ipaddr/, "HTTP in"],
  [/node:(_?http|net|_stream)|internal:(stream|http|net|valid)/, "HTTP out"],
];

const topFunctions = 20;

/** @param window what of the profile counts, in ms before its end */
export async function sumUpProfile(folder: string, window: { fromMs: number; toMs: number }): Promise<string> {
  const files = readdirSync(folder).filter((name) => name.endsWith(".cpuprofile"));
  const [latest] = files
    .map((name) => join(folder, name))
    .toSorted((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  if (latest === undefined) throw new Error(`No profile was written to ${folder}.`);
  return `${latest}\n${sumUp((await Bun.file(latest).json()) as CpuProfile, window)}`;
}

function sumUp(profile: CpuProfile, { fromMs, toMs }: { fromMs: number; toMs: number }): string {
  const { nodes, samples, timeDeltas, startTime, endTime } = profile;
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map<number, number>();
  for (const { id, children = [] } of nodes) for (const child of children) parents.set(child, id);
  const stackOf = (id: number) => {
    const stack: string[] = [];
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) stack.push(nameOf(byId.get(at)));
    return stack;
  };

  const intervalUs = timeDeltas.toSorted((a, b) => a - b)[timeDeltas.length >> 1] ?? 1000;
  const functions = new Map<string, number>();
  const parts = new Map<string, number>();
  let atUs = startTime;
  let sampledUs = 0;
  samples.forEach((id, i) => {
    const deltaUs = timeDeltas[i] ?? 0;
    atUs += deltaUs;
    if (atUs < endTime - fromMs * 1000 || atUs > endTime - toMs * 1000) return;
    // A longer gap was spent outside; only the last interval belongs to this sample.
    const weightUs = Math.min(deltaUs, intervalUs);
    const stack = stackOf(id);
    sampledUs += weightUs;
    add(functions, selfName(stack), weightUs);
    add(parts, subsystemOf(stack), weightUs);
  });
  const wholeUs = (fromMs - toMs) * 1000;
  add(parts, "outside JavaScript: event loop, sockets, HTTP parser, waiting", wholeUs - sampledUs);
  return [
    "share of the time, by subsystem",
    ...table(parts, wholeUs, 30),
    `\nshare of the time, by function (self; top ${topFunctions})`,
    ...table(functions, wholeUs, topFunctions),
  ].join("\n");
}

function nameOf(node: ProfileNode | undefined): string {
  if (node === undefined) return "(unknown)";
  const { functionName, url, lineNumber } = node.callFrame;
  const place = url.replace(/^.*\/(node_modules|src|test)\//, (_, folder) =>
    folder === "node_modules" ? "" : `${folder}/`,
  );
  return `${functionName || "(anonymous)"} ${place}${place === "" ? "" : `:${lineNumber + 1}`}`.trim();
}

/** Native functions have no place of their own: the first function of ours below says who called. */
function selfName(stack: readonly string[]): string {
  const [self = "", ...callers] = stack;
  if (self.includes(" ")) return self;
  const caller = callers.find((name) => name.includes(" src/"));
  return caller === undefined ? self : `${self} ← ${caller}`;
}

function subsystemOf(stack: readonly string[]): string {
  for (const frame of stack) {
    const found = subsystems.find(([pattern]) => pattern.test(frame));
    if (found !== undefined && found[1] !== "") return found[1];
  }
  return stack.some((frame) => /garbage/i.test(frame)) ? "GC" : "other JavaScript";
}

const add = (to: Map<string, number>, key: string, amount: number) => void to.set(key, (to.get(key) ?? 0) + amount);

function table(entries: Map<string, number>, whole: number, rows: number): string[] {
  return [...entries]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, rows)
    .map(([name, amount]) => `${((amount / whole) * 100).toFixed(1).padStart(6)} %  ${name}`);
}
