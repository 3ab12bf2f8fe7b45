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

test.skipIf(!hasLimits)("a request is made when no descriptor is left, and fails like any other", () => {
  expect(run("fetch")).toEqual({ exitCode: 0, said: ["EMFILE"] });
});

// If this fails, the runtime has learned to do without, and so can we.
test.skipIf(!hasLimits).each(["workers", "fetch alone"])("otherwise, the runtime ends the process: %s", (how) => {
  expect(run(how).exitCode).toBe(1);
});
