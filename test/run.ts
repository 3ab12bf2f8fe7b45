import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { constants, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { formatDuration } from "../src/lib/duration.ts";
import { runSmoke } from "./binary/smoke.ts";
import { executableVariable } from "./labs/crash/program.ts";
import {
  backendVariable,
  databaseVariable,
  hasOwnServer,
  makeFastFolder,
  startFastServer,
} from "./support/postgres-server.ts";

/**
 * `npm test`: formatting and lint, types, the dashboard, all tests, the build, the executable that was built, its death and
 * resurrection, and its pages in a browser.
 * Every stage runs, also after one that failed, but for those of the executable when there is none. The last line counts
 * them all. `--seeds N` sets how many histories of deliveries are simulated, `--histories N` how many of payments at most:
 * those go on until the others have ended. `--postgres` runs all tests of the API over PostgreSQL, and nothing else.
 *
 *   lint ─▶ types ─▶ web types ─▶ dashboard ─▶ tests ─▶ postgres ─▶ build ─▶ executable ─▶ crash ─▶ browser
 *   deliveries ─▶ billers ─▶ payments      on the time that those leave over: most of them wait as long as they work
 */

interface Outcome {
  /** What is shown above its line. */
  told: readonly string[];
  passed: number;
  failed: number;
  /** By name: what is skipped should be known. */
  skipped: string[];
}

const root = join(import.meta.dir, "..");
const executable = join(root, "dist", process.platform === "win32" ? "postrider.exe" : "postrider");
/** They need the executable, so they are not among the other tests. */
const browserTests = "test/browser";
const crashTests = "test/labs/crash";
const apiTests = "test/api";
/**
 * Tests of the API that are not run over PostgreSQL each time, as all of them take four minutes there, and the others half of
 * one: what is decided before the store is asked, or beside it; what is in the nature of a file; payments; and the longest. The
 * verbs that those rest on are held by the suites of the store, over both backends.
 */
const besidePostgres = [
  ...["about", "auth-matrix", "cross-site", "errors", "log", "malformed", "modes", "sections", "tls", "watch"],
  ...["backups", "damage", "master-key", "storage-full"],
  ...["billing", "closing", "dunning", "month-end", "month-end-confirmed", "payment-page", "payment-restart"],
  ...["payment-secrets", "payment-visitors", "payments", "paystack", "paystack-month", "paystack-upgrade"],
  ...["refused-email", "restored", "upgrade", "upgrade-confirmed", "upgrade-paid"],
  ...[
    "fairness",
    "inbox",
    "inbox-answers",
    "login-emails",
    "paused",
    "replay-progress",
    "replays",
    "restart",
    "sessions",
  ],
];
const say = (text: string) => process.stdout.write(`${text}\n`);

/** Together a minute and a half of one core, on a machine that does nothing else. */
const leastHistories = 500;
const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "1000" },
    histories: { type: "string", default: String(leastHistories) },
    postgres: { type: "boolean", default: false },
  },
});
/** Of two billers on PostgreSQL: a third of a minute of one core. */
const racedHistories = 12;
/** Processes side by side. */
const simulations = 2;
/** Processes side by side on two cores: much of a test is waiting, for a fifth of the time in all. */
const workers = 3;
/**
 * What a file has loaded stays for the next ones of its process, as with `bun test FOLDER`: loading the program, and compiling it
 * anew, was a fifth of the processor's time.
 */
const oneAfterAnother = [`--parallel=${workers}`, "--no-isolate"];
/** And of tests that kill servers of their own: they leave half of the processor idle when alone. */
const besideEachOther = ["--parallel=2"];

const clean: Outcome = { told: [], passed: 0, failed: 0, skipped: [] };
const failure = (...told: string[]): Outcome => ({ ...clean, told, failed: 1 });

async function main(): Promise<void> {
  const outcomes = values.postgres ? [await testOverPostgres([])] : await runAll();
  const passed = outcomes.reduce((sum, outcome) => sum + outcome.passed, 0);
  const failed = outcomes.reduce((sum, outcome) => sum + outcome.failed, 0);
  const skipped = outcomes.flatMap((outcome) => outcome.skipped);
  for (const name of skipped) say(`skipped: ${name}`);
  say(`${passed} passed, ${failed} failed${skipped.length > 0 ? `, ${skipped.length} skipped` : ""}`);
  process.exitCode = failed === 0 ? 0 : 1;
}

async function runAll(): Promise<Outcome[]> {
  const inTurn = runInTurn();
  return (await Promise.all([inTurn, runSimulations(inTurn)])).flat();
}

/** @param leftOut names of files */
const testOverPostgres = (leftOut: readonly string[]) =>
  stage("postgres", () =>
    withDatabase((env) =>
      runTests([apiTests, ...leftOut.map((name) => `--path-ignore-patterns=${apiTests}/${name}.test.ts`)], {
        env: { ...shortLived, ...env, [backendVariable]: "postgres" },
        options: oneAfterAnother,
      }),
    ),
  );

async function runInTurn(): Promise<Outcome[]> {
  const outcomes = [
    await stage("lint", () => succeeds("biome", "check", "--error-on-warnings", ".")),
    await stage("types", () => succeeds("tsc", "--noEmit")),
    await stage("web types", () => succeeds("tsc", "--noEmit", "-p", "web")),
    await stage("dashboard", () => succeeds("bun", "web/build.ts")),
    await stage("tests", () =>
      withDatabase((env) =>
        inFastFolder((folder) =>
          runTests(
            [browserTests, crashTests].map((tests) => `--path-ignore-patterns=${tests}/**`),
            { env: { ...shortLived, ...env, ...folder }, options: oneAfterAnother },
          ),
        ),
      ),
    ),
  ];
  // As everywhere: what needs a PostgreSQL is left out only where there is none to be had.
  if (givenDatabase || hasOwnServer) outcomes.push(await testOverPostgres(besidePostgres));
  const build = await stage("build", () => succeeds("bun", "build.ts"));
  outcomes.push(build);
  if (build.failed > 0) return [...outcomes, failure(), failure(), failure()];
  outcomes.push(await stage("executable", smoke));
  outcomes.push(
    await stage("crash", () =>
      runTests([crashTests], { env: { [executableVariable]: executable }, options: besideEachOther }),
    ),
  );
  outcomes.push(await stage("browser", () => runTests([browserTests], { env: shortLived, options: oneAfterAnother })));
  return outcomes;
}

/** @param others when they have ended, only the least is still waited for */
async function runSimulations(others: Promise<unknown>): Promise<Outcome[]> {
  const payments = { most: Number(values.histories), least: leastHistories, until: others };
  return [
    await stage("deliveries", () => simulate("test/labs/sim/delivery.ts", "seeds", { most: Number(values.seeds) })),
    await stage("billers", raceBillers),
    await stage("payments", () => simulate("test/labs/sim/billing.ts", "histories", payments)),
  ];
}

/** All that a stage has to tell goes out at once, so that two that run side by side do not talk into each other. */
async function stage(name: string, run: () => Promise<Outcome>): Promise<Outcome> {
  const startedAt = performance.now();
  const outcome = await run().catch((error: unknown) => failure(describeError(error)));
  const took = formatDuration(performance.now() - startedAt);
  const counts = outcome.passed > 0 ? `  ${outcome.passed} passed` : "";
  const line = `${outcome.failed === 0 ? "ok    " : "FAILED"}  ${name.padEnd(10)}  ${took.padStart(8)}${counts}`;
  say([...outcome.told, line].join("\n"));
  return outcome;
}

/** Runs a tool of the project. */
async function runTool(
  name: string,
  args: readonly string[],
  { env = {}, gives = false, calledOffAt }: ToolOptions = {},
): Promise<{ succeeded: boolean; text: string }> {
  const command = name === "bun" ? process.execPath : join(root, "node_modules", ".bin", name);
  const child = Bun.spawn([command, ...args], {
    cwd: root,
    env: { ...environment, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  if (gives) giveWay(child.pid);
  void calledOffAt?.then(() => child.kill("SIGTERM"));
  const said = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  const text = said.join("\n").trim();
  return { succeeded: (await child.exited) === 0, text };
}

/** Not handed on under the name of a setting: programs that tests start would refuse it. */
const { POSTRIDER_TEST_DATABASE_URL: givenDatabase, ...environment } = process.env;

/**
 * One server for all tests: run side by side, each file has a world of its own and would start one. What keeps it from
 * starting is told by the tests that need it.
 */
async function withDatabase<T>(run: (env: Readonly<Record<string, string>>) => Promise<T>): Promise<T> {
  if (givenDatabase) return run({ [databaseVariable]: givenDatabase });
  const server = hasOwnServer ? await startFastServer().catch(() => null) : null;
  try {
    return await run(server ? { [databaseVariable]: server.url("postgres") } : {});
  } finally {
    await server?.remove();
  }
}

/**
 * In memory, where there is room: what becomes of data when a disk fails, fills up or is slow is tested on disks of their own, and
 * by the stage `crash`.
 */
async function inFastFolder<T>(run: (env: { readonly TMPDIR: string }) => Promise<T>): Promise<T> {
  const folder = makeFastFolder();
  try {
    return await run({ TMPDIR: folder });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface ToolOptions {
  env?: Readonly<Record<string, string>>;
  /** It leaves the processor to whatever else wants it. @default false */
  gives?: boolean;
  /** Then it gets SIGTERM. */
  calledOffAt?: Promise<unknown>;
}

/** A process that has ended already, or a system that does not know priorities, is no reason to fail. */
function giveWay(pid: number): void {
  try {
    setPriority(pid, constants.priority.PRIORITY_LOW);
  } catch {}
}

async function succeeds(name: string, ...args: string[]): Promise<Outcome> {
  const { succeeded, text } = await runTool(name, args);
  return succeeded ? clean : failure(text);
}

interface Histories {
  most: number;
  /** So many are simulated in any case, when the rest is called off. */
  least?: number;
  until?: Promise<unknown>;
}

/**
 * Many histories in processes side by side; each has its own seeds. No real time passes in them, so they give way to the
 * tests that run meanwhile and are held to seconds and frames.
 */
async function simulate(script: string, countOption: string, { most, least, until }: Histories): Promise<Outcome> {
  const share = Math.ceil(most / simulations);
  const runs = await Promise.all(
    Array.from({ length: simulations }, (_, i) => {
      const first = 1 + i * share;
      const words = [script, `--first=${first}`, `--${countOption}=${Math.min(share, most - first + 1)}`];
      if (least !== undefined) words.push(`--least=${Math.ceil(Math.min(least, most) / simulations)}`);
      return runTool("bun", words, { gives: true, ...(until && { calledOffAt: until }) });
    }),
  );
  const passed = runs.filter(({ succeeded }) => succeeded).length;
  const told = runs.map(({ succeeded, text }) => (succeeded ? `        ${text}` : text));
  return { told, passed, failed: simulations - passed, skipped: [] };
}

/** Payments over PostgreSQL, if there is any. */
async function raceBillers(): Promise<Outcome> {
  if (!hasOwnServer && !givenDatabase) return { ...clean, skipped: ["payments over PostgreSQL"] };
  const { succeeded, text } = await runTool(
    "bun",
    ["test/labs/sim/billing.ts", `--histories=${racedHistories}`, "--postgres"],
    { gives: true, ...(givenDatabase && { env: { [databaseVariable]: givenDatabase } }) },
  );
  return succeeded ? { ...clean, told: [`        ${text}`], passed: 1 } : failure(text);
}

/**
 * Few tests run long enough to earn back what the last tier of compilation takes: a tenth of the processor's time. Not where the
 * executable is killed: it would inherit that.
 */
const shortLived = { BUN_JSC_useFTLJIT: "0" };

/** Of a test, however busy the machine is. */
const timeout = "--timeout=120000";

/**
 * How long each file takes, so that the longest begin first: one of three and a half minutes would be last, and alone. With
 * `--update-timings` beside it, `bun test` writes down what it measures.
 */
const timings = "--timings=test/timings.json";

/** Files that may be run again: where more fail, it is not the machine. */
const mostRepeated = 3;

/**
 * Counts from the report for machines: the one for people has no end that is meant to be parsed. Files that failed beside
 * others are run once more by themselves, since some tests are about time and the machine may do other things as well. What
 * passes then is told by name; what fails again has failed.
 */
async function runTests(
  selection: readonly string[],
  { env = {}, options = [] }: { env?: Readonly<Record<string, string>>; options?: readonly string[] } = {},
): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), "postrider-test-"));
  const report = join(folder, "junit.xml");
  try {
    const { succeeded, text } = await runTool(
      "bun",
      ["test", ...selection, ...options, timings, timeout, "--reporter=junit", `--reporter-outfile=${report}`],
      { env },
    );
    if (!existsSync(report)) return failure(text, "bun test left no report");
    const { failures: failed, ...outcome } = readReport(readFileSync(report, "utf8"));
    if (succeeded) return outcome;
    const failures = [...failed, ...errorsBetweenTests(text)];
    // A file that cannot be loaded is a failure that the report does not have.
    const said = countSaid(text, "fail") + countSaid(text, "errors?");
    const files = [...new Set(failures.map(({ file }) => file))];
    const isAllKnown = failures.length > 0 && said <= failures.length && files.length <= mostRepeated;
    if (
      isAllKnown &&
      (await runTool("bun", ["test", ...files.map((file) => `./${file}`), timeout], { env })).succeeded
    ) {
      // With the reason: what fails one time in a hundred is mended only if each of them tells it.
      const told = failures.map(
        ({ file, name, reason }) => `failed once, and passed by itself: ${file}: ${name}\n${reason}`,
      );
      return { ...outcome, told, passed: outcome.passed + outcome.failed, failed: 0 };
    }
    // Again at the end of what may be thousands of lines.
    const again = failures.map(({ file, name }) => `(fail) ${file}: ${name}`);
    return { ...outcome, told: [text, ...again], failed: Math.max(outcome.failed, said, 1) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** In characters. */
const longestReason = 2_000;

interface Failure {
  file: string;
  name: string;
  reason: string;
}

const countSaid = (text: string, what: string) => Number(new RegExp(`^\\s*(\\d+) ${what}$`, "m").exec(text)?.[1] ?? 0);

/** What was thrown while no test ran, such as by a promise that nobody waited for: it stands below its file's name. */
function errorsBetweenTests(text: string): Failure[] {
  const errors: Failure[] = [];
  let file = "";
  for (const section of text.split(/^(?=\S+\.test\.ts:$|# Unhandled error between tests$)/m)) {
    const header = /^(\S+\.test\.ts):$/m.exec(section)?.[1];
    if (section.startsWith("#")) {
      const name = /^.*error: .*$/im.exec(section)?.[0] ?? "an error between tests";
      errors.push({ file, name, reason: section.slice(0, longestReason) });
    } else if (header) file = header;
  }
  return errors;
}

function readReport(xml: string): Outcome & { failures: readonly Failure[] } {
  const outcome = { told: [], passed: 0, failed: 0, skipped: [] as string[], failures: [] as Failure[] };
  for (const [, attributes = "", end, content = ""] of xml.matchAll(
    /<testcase\b((?:[^">]|"[^"]*")*?)(\/>|>([\s\S]*?)<\/testcase>)/g,
  )) {
    const name = unescapeXml(/\bname="([^"]*)"/.exec(attributes)?.[1] ?? "");
    const file = unescapeXml(/\bfile="([^"]*)"/.exec(attributes)?.[1] ?? "");
    const isEmpty = end === "/>";
    if (!isEmpty && content.includes("<skipped")) outcome.skipped.push(name);
    else if (!isEmpty && /<(failure|error)\b/.test(content)) {
      outcome.failed += 1;
      const reason = unescapeXml(/\bmessage="([^"]*)"/.exec(content)?.[1] ?? "").slice(0, longestReason);
      outcome.failures.push({ file, name, reason });
    } else outcome.passed += 1;
  }
  return outcome;
}

const entities: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&", "#10": "\n" };
const unescapeXml = (text: string) => text.replace(/&(#?\w+);/g, (whole, name: string) => entities[name] ?? whole);

async function smoke(): Promise<Outcome> {
  const results = await runSmoke(executable);
  const told = results.flatMap(({ name, fault }) =>
    fault === null ? [] : [`(fail) executable > ${name}\n  ${fault}`],
  );
  const skipped = results.flatMap(({ name, isSkipped }) => (isSkipped ? [`executable > ${name}`] : []));
  return { told, passed: results.length - told.length - skipped.length, failed: told.length, skipped };
}

const describeError = (error: unknown) => (error instanceof Error ? (error.stack ?? error.message) : String(error));

main().catch((error: unknown) => {
  say(describeError(error));
  say("0 passed, 1 failed");
  process.exitCode = 1;
});
