import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Tier } from "../../../../src/domain/tenant.ts";
import { databaseFile } from "../../../../src/store/sqlite/open.ts";
import { endWithUs, installCleanup, removeAtEnd } from "../../bench/cleanup.ts";
import { nowUs, receiverPath } from "../../bench/event.ts";
import { atRate } from "../../bench/generator.ts";
import { describeSurroundings, folderOnDisk } from "../../bench/machine.ts";
import { clearProgress, say } from "../../bench/output.ts";
import { type PhaseResult, runPhase } from "../../bench/phase.ts";
import { type Receiver, startReceiver } from "../../bench/receiver.ts";
import { type Bar, barLine, machineLines } from "../../bench/report.ts";
import { makeDataDir, type Server, startProduct } from "../../bench/servers.ts";
import { type Api, createApi } from "../../bench/tenants.ts";
import { type AttackResult, attackLines, judgeAttack, judgeTiming, timingLine } from "./abuse-report.ts";
import type { Attack } from "./attack.ts";
import { attacks } from "./attacks.ts";
import { idsOf, measureLogins } from "./login-timing.ts";
import { type Account, makeAccounts, seedAccounts, type Tally, targetSettings } from "./target.ts";

/**
 * `bun run abuse`: each attack on a server of its own, in public mode, beside a healthy tenant with 20 events a second.
 *
 *   attacker (a child) ──▶ server (a child) ──▶ receiver and healthy tenant: this process
 */
const help = `Usage: bun run abuse [options]

  --only NAMES       of ${attacks.map(({ name }) => name).join(", ")}, login-timing; separated by commas
  --seconds 20       of each attack; some take longer
  --alone-seconds 10 of the healthy tenant alone, before each attack
  --pairs 400        pairs of logins that are timed
  --source           run src/main.ts instead of dist/postrider
  --no-gate          exit with 0 also when a bar is missed
`;

const healthyPerSecond = 20;
const warmupSeconds = 2;
const loginAccounts = 20;
const timing = "login-timing";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: [...attacks.map(({ name }) => name), timing].join() },
    seconds: { type: "string", default: "20" },
    "alone-seconds": { type: "string", default: "10" },
    pairs: { type: "string", default: "400" },
    source: { type: "boolean", default: false },
    "no-gate": { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});

installCleanup();
try {
  if (values.help) process.stdout.write(help);
  process.exit(values.help ? 0 : await abuse(new Set(values.only.split(","))));
} catch (error) {
  clearProgress();
  process.stderr.write(`abuse: ${error instanceof Error ? error.message : String(error)} (bun run abuse --help)\n`);
  process.exit(2);
}

async function abuse(only: ReadonlySet<string>): Promise<number> {
  if (process.platform !== "linux") throw new Error("The command reads /proc. Try: on Linux.");
  const chosen = attacks.filter(({ name }) => only.has(name));
  if (chosen.length === 0 && !only.has(timing)) throw new Error(`--only knows nothing of "${values.only}".`);
  const parent = folderOnDisk();
  const folder = makeDataDir(parent);
  removeAtEnd(folder);
  say(machineLines(await describeSurroundings(folder)));

  const bars: Bar[] = [];
  for (const attack of chosen) {
    const count = 1 + attack.accounts;
    const seeds = { count: attack.guessesPasswords ? 0 : count, tier: attack.tier, fill: attack.seed };
    const result = await withServer(parent, seeds, async (target) => {
      const { api, dataDir, seeded } = target;
      return measure(attack, target, attack.guessesPasswords ? await makeAccounts(api, dataDir, count) : seeded);
    });
    say(attackLines(result));
    bars.push(...judgeAttack(result));
  }
  if (only.has(timing)) {
    for (const result of await withServer(parent, { count: 0 }, timeLogins)) {
      say(timingLine(result));
      bars.push(judgeTiming(result));
    }
  }
  say("");
  for (const bar of bars) say(barLine(bar));
  return values["no-gate"] || bars.every(({ passed }) => passed) ? 0 : 1;
}

interface Running {
  server: Server;
  api: Api;
  dataDir: string;
  seeded: readonly Account[];
}

async function withServer<T>(
  parent: string,
  seeds: { count: number; tier?: Tier | undefined; fill?: Attack["seed"] | undefined },
  act: (target: Running) => Promise<T>,
): Promise<T> {
  const dataDir = makeDataDir(parent);
  removeAtEnd(dataDir);
  const seeded = await seedAccounts(dataDir, seeds);
  const server = await startProduct({ dataDir, source: values.source, env: targetSettings });
  try {
    return await act({ server, api: createApi(server.port), dataDir, seeded });
  } finally {
    await server.stop();
  }
}

async function measure(
  attack: Attack,
  { server, api, dataDir }: Running,
  made: readonly Account[],
): Promise<AttackResult> {
  const [healthy, ...accounts] = made;
  if (healthy === undefined) throw new Error("No account was made.");
  const receiver = startReceiver();
  const webhook = { webhook_url: `http://127.0.0.1:${receiver.port}${receiverPath(0)}` };
  await api("PUT", "/v1/tenants/webhooks", healthy.session, [webhook]);
  const run = (label: string, seconds: number): Promise<PhaseResult> =>
    runPhase({ port: server.port, apiKeys: [healthy.apiKey], meter: server.meter }, receiver, {
      label,
      pace: (startUs) => atRate(healthyPerSecond, startUs),
      warmupSeconds,
      seconds,
    });

  const alone = await run("alone", Number(values["alone-seconds"]));
  const residentBefore = server.meter.residentBytes();
  const diskBefore = bytesOf(dataDir);
  server.meter.takePhasePeak();
  const startedUs = nowUs();
  const attacker = startAttacker(attack, { port: server.port, accounts });
  const beside = await run(attack.name, Math.max(Number(values.seconds), attack.seconds ?? 0));
  let residentPeak = beside.residentPeakBytes;
  const tally = await attacker.end();
  const seconds = (nowUs() - startedUs) / 1e6;
  residentPeak = Math.max(residentPeak, server.meter.takePhasePeak());
  const diskGrowth = bytesOf(dataDir) - diskBefore;
  const recoveredMs = await deliverOne(receiver, api, healthy);
  receiver.close();
  return { attack, seconds, alone, beside, tally, residentBefore, residentPeak, diskGrowth, recoveredMs };
}

/** The database and its log. */
function bytesOf(dataDir: string): number {
  const path = join(dataDir, "data", databaseFile);
  return [path, `${path}-wal`].reduce((sum, file) => sum + (existsSync(file) ? statSync(file).size : 0), 0);
}

function startAttacker(attack: Attack, target: { port: number; accounts: readonly Account[] }) {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "attacker.ts"), attack.name], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  endWithUs(child);
  child.stdin.write(`${JSON.stringify(target)}\n`);
  child.stdin.flush();
  return {
    async end(): Promise<Tally> {
      if (!attack.isFinite) child.stdin.end();
      const said = await new Response(child.stdout).text();
      if ((await child.exited) !== 0) throw new Error(`The attacker of ${attack.name} failed.`);
      return JSON.parse(said) as Tally;
    },
  };
}

async function deliverOne(receiver: Receiver, api: Api, { apiKey }: Account): Promise<number> {
  const startedUs = nowUs();
  const arrival = receiver.nextDelivery();
  await api("POST", "/v1/ingest", apiKey, { payload: { after: "the attack" } });
  await arrival;
  return (nowUs() - startedUs) / 1000;
}

async function timeLogins({ server, api, dataDir }: Running) {
  const accounts = await makeAccounts(api, dataDir, loginAccounts);
  const operatorToken = (await Bun.file(join(dataDir, "data", "operator-token")).text()).trim();
  const emails = accounts.map((_, n) => `owner${n}@example.com`);
  for (const email of emails) {
    await api("POST", "/operator/tenants", operatorToken, {
      tier: "pro",
      name: "Owner",
      email,
      password: "Corr3ct#Horse",
    });
  }
  const results = [];
  for (const ids of idsOf(accounts, emails)) results.push(await measureLogins(server.port, ids, Number(values.pairs)));
  return results;
}
