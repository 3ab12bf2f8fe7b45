import { expect, test } from "bun:test";
import { join } from "node:path";

/** Only Linux lets a program be started with a limit by another. */
const hasLimits = process.platform === "linux" && Bun.which("prlimit") !== null;

const program = join(import.meta.dir, "threads-in-need.ts");

const run = (how: string) => {
  const { exitCode, stdout } = Bun.spawnSync(["prlimit", "--nofile=64:64", process.execPath, program, how]);
  return { exitCode, said: stdout.toString().trim().split("\n") };
};

test.skipIf(!hasLimits)("threads start when no descriptor is left, and nothing is accepted while they do", () => {
  expect(run("threads")).toEqual({
    exitCode: 0,
    said: ["sender", "reader", "probes"].flatMap((name) => ["pause", "go on", name]),
  });
});

// If this fails, the runtime has learned to do without, and so can we.
test.skipIf(!hasLimits)("without the reserve, the runtime ends the process", () => {
  expect(run("workers").exitCode).not.toBe(0);
});
