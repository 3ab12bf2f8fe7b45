import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../release/lock.ts";
import { targets } from "../../release/targets.ts";

interface Job {
  permissions?: Record<string, string>;
  strategy?: { matrix: { include: { target?: string; architecture?: string }[] } };
  steps: { uses?: string; run?: string }[];
}

interface Workflow {
  permissions: Record<string, string>;
  jobs: Record<string, Job>;
}

const folder = join(root, ".github/workflows");
const workflows = readdirSync(folder).map((name) => {
  const text = readFileSync(join(folder, name), "utf8");
  return [name, text, Bun.YAML.parse(text) as Workflow] as const;
});
const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

describe.each(workflows)("%s", (_, text, { jobs, permissions }) => {
  const steps = Object.values(jobs).flatMap((job) => job.steps);

  test("pins every action by its commit, and says which version that is", () => {
    const used = text.match(/^ *(?:- )?uses: .*$/gm) ?? [];
    expect(used.length).toBeGreaterThan(0);
    expect(used.filter((line) => !/uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line))).toEqual([]);
  });

  test("runs scripts that there are, with the runtime that is pinned", () => {
    const run = steps.map((step) => step.run ?? "").join("\n");
    const named = [...run.matchAll(/bun run ([\w:]+)/g)].map(([, name = ""]) => name);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
    expect([...run.matchAll(/bun@(\S+)/g)].filter(([, version]) => version !== Bun.version)).toEqual([]);
  });

  test("can write nothing unless a job says that it does", () => {
    expect(Object.values(permissions).filter((access) => access !== "read")).toEqual([]);
  });

  test("puts nothing from outside into a script", () => {
    expect(steps.filter((step) => step.run?.includes("${{"))).toEqual([]);
  });
});

test("a release tries every target, and installs every package", () => {
  const jobs: Workflow["jobs"] = workflows.find(([name]) => name === "release.yml")?.[2].jobs ?? {};
  const rows = (name: string) => jobs[name]?.strategy?.matrix.include ?? [];
  expect(rows("try").map(({ target = "" }) => target.split(".")[0])).toEqual(targets.map(({ name }) => name));
  expect(rows("package").map(({ architecture }) => architecture)).toEqual(
    targets.flatMap(({ debian }) => debian ?? []),
  );
  const writers = Object.entries(jobs).filter(([, { permissions = {} }]) =>
    Object.values(permissions).includes("write"),
  );
  expect(writers.map(([name]) => name)).toEqual(["image", "publish"]);
});
