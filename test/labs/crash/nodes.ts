import { tmpdir } from "node:os";
import { parseArgs } from "node:util";
import type { NodesFigures } from "../../../src/cli/selftest/crash/figures.ts";
import { createNodesRun } from "../../../src/cli/selftest/crash/nodes-run.ts";
import { nodesPlan } from "../../../src/cli/selftest/crash/report.ts";
import { conduct, type Trial } from "../../../src/cli/selftest/rig/conduct.ts";
import { makeFolder } from "../../../src/cli/selftest/rig/options.ts";
import { systemClock as clock } from "../../../src/lib/clock.ts";
import { createCuttingProxy } from "../../support/postgres-proxy.ts";
import { startDurableServer } from "../../support/postgres-server.ts";
import { createScriptedIo } from "../../support/scripted-io.ts";
import { program } from "./program.ts";

/**
 * `bun run crash:nodes`: the crash test of several nodes with a PostgreSQL of its own, which is killed, too, and whose
 * connections are cut. `EXECUTABLE_UNDER_TEST` names an executable in place of the sources. The exit code is 0 when
 * everything held.
 */
const help = `Usage: bun run crash:nodes [options]

  --cycles 20    how many
  --nodes 4      servers on the database
  --seed N       repeats the random choices of a run
  --spare        let the database alone
  --grace 0      seconds by which deliveries may go on too late, on a machine that does other things as well
  --json         print one JSON value
`;

const { values } = parseArgs({
  options: {
    cycles: { type: "string", default: "20" },
    nodes: { type: "string", default: "4" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 32)) },
    spare: { type: "boolean", default: false },
    grace: { type: "string", default: "0" },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

if (values.help) process.stdout.write(help);
else process.exit(await run());

async function run(): Promise<number> {
  const [cycles, nodes, seed] = [values.cycles, values.nodes, values.seed].map(Number) as [number, number, number];
  const server = await startDurableServer();
  const proxy = await createCuttingProxy(server.url("postgres"));
  const { start, stop } = server;
  const mishaps = values.spare
    ? null
    : { kill: () => stop("immediate"), start, cut: (what: "request" | "answer") => void proxy.cutNext(what) };
  const folder = makeFolder(tmpdir());
  const io = {
    ...createScriptedIo().io,
    out: (text: string) => process.stdout.write(`${text}\n`),
    progress: (line: string) => process.stderr.write(line === "" ? "" : `${line}\n`),
    nextSignal: () => new Promise<"SIGINT">((resolve) => process.once("SIGINT", () => resolve("SIGINT"))),
  };
  let told = 0;
  const trial: Trial<NodesFigures> = createNodesRun({
    nodes,
    database: { url: proxy.url, mishaps },
    cycles,
    seed,
    folder,
    clock,
    graceMs: Number(values.grace) * 1000,
    program,
    onProgress({ cycles: done, acknowledged, delivered, faults }) {
      io.progress(`cycle ${done} of ${cycles}, ${acknowledged} acknowledged, ${delivered} delivered, ${faults} faults`);
      // What is wrong is told at once: a run may take hours.
      for (const text of trial.faults.told.slice(told)) io.progress(`  ${text}`);
      told = trial.faults.told.length;
    },
  });
  const command = `bun run crash:nodes --cycles ${cycles} --nodes ${nodes} --seed ${seed}${values.spare ? " --spare" : ""}`;
  try {
    return await conduct(nodesPlan({ cycles, seed, folder, command, trial }), io, values.json);
  } finally {
    await proxy.close();
    await server.remove();
  }
}
