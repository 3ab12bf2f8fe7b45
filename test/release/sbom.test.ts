import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { Glob } from "bun";
import { problemsOfInstall, problemsOfLicences, problemsOfLock } from "../../release/audit.ts";
import { writeLicences } from "../../release/licences.ts";
import { readLock, root } from "../../release/lock.ts";
import { writeSbom } from "../../release/sbom.ts";
import { findShipped } from "../../release/shipped.ts";

/** Hazards, section 5, "Supply chain": what is locked is what is shipped, and the list of it says so. */

const lock = readLock();
const shipped = await findShipped();
const names = shipped.map(({ name }) => name);
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** Packages that our own files import at run time, found without the bundler. */
function importedBy(folder: string): string[] {
  const found = new Set<string>();
  for (const file of new Glob("**/*.{ts,tsx}").scanSync(join(root, folder))) {
    if (file.endsWith(".d.ts") || file === "build.ts") continue;
    const transpiler = new Bun.Transpiler({ loader: file.endsWith("x") ? "tsx" : "ts" });
    for (const { path } of transpiler.scanImports(readFileSync(join(root, folder, file), "utf8"))) {
      // The scanner adds what markup is compiled to by default; ours is compiled to Preact.
      if (!/^(\.|node:|bun(:|$)|react(\/|$))/.test(path))
        found.add(
          path
            .split("/")
            .slice(0, path.startsWith("@") ? 2 : 1)
            .join("/"),
        );
    }
  }
  return [...found].sort();
}

describe("the bill of materials", () => {
  const sbom = JSON.parse(writeSbom(shipped));

  test.each(["src", "web"])("has every package that %s imports", (folder) => {
    const imported = importedBy(folder);
    expect(imported.length).toBeGreaterThan(4);
    expect(imported.filter((name) => !names.includes(name))).toEqual([]);
  });

  test("has the runtime, and every dependency that is none of the tools", () => {
    expect(names).toContain("bun");
    expect(Object.keys(manifest.dependencies).filter((name) => !names.includes(name))).toEqual([]);
    for (const tool of ["typescript", "@biomejs/biome", "playwright-core", "fast-check", "drizzle-kit", "axe-core"]) {
      expect(names).not.toContain(tool);
    }
  });

  test("names each with its version, licence, source and hash, as the lock file has it", () => {
    expect(sbom).toMatchObject({ bomFormat: "CycloneDX", specVersion: "1.6", version: 1 });
    expect(sbom.components).toHaveLength(new Set(shipped.map(({ name, version }) => `${name}@${version}`)).size);
    const elysia = lock.packages.find(({ name }) => name === "elysia");
    expect(sbom.components).toContainEqual({
      type: "library",
      "bom-ref": `pkg:npm/elysia@${elysia?.version}`,
      name: "elysia",
      version: elysia?.version,
      scope: "required",
      licenses: [{ license: { id: "MIT" } }],
      purl: `pkg:npm/elysia@${elysia?.version}`,
      externalReferences: [
        {
          type: "distribution",
          url: `https://registry.npmjs.org/elysia/-/elysia-${elysia?.version}.tgz`,
          hashes: [
            {
              alg: "SHA-512",
              content: Buffer.from(elysia?.integrity.slice(7) ?? "", "base64").toString("hex"),
            },
          ],
        },
      ],
    });
  });

  test("every reference names one component, and every component is reached from the program", () => {
    const edges = new Map<string, string[]>(
      sbom.dependencies.map(({ ref, dependsOn }: { ref: string; dependsOn: string[] }) => [ref, dependsOn]),
    );
    const own: string = sbom.metadata.component["bom-ref"];
    const reached = new Set<string>();
    const walk = (ref: string) => {
      if (reached.has(ref)) return;
      reached.add(ref);
      for (const next of edges.get(ref) ?? []) walk(next);
    };
    walk(own);
    const refs = sbom.components.map((component: { "bom-ref": string }) => component["bom-ref"]);
    expect(new Set(refs).size).toBe(refs.length);
    expect([...reached].sort()).toEqual([own, ...refs].sort());
  });

  test("is the same for the same lock file", async () => {
    expect(writeSbom(await findShipped())).toBe(writeSbom(shipped));
  });
});

test("the licences of all of it are printed, with the notices of what packages have bundled themselves", () => {
  const text = writeLicences(shipped);
  for (const { name, version } of shipped) expect(text).toContain(`\n${name} ${version} (`);
  expect(text).toContain("The Postrider authors");
  // swagger-ui's bundle has React in it.
  expect(text).toMatch(/react\S*\.production/);
});

describe("the audit", () => {
  test("finds nothing wrong with what is locked, installed and shipped", () => {
    expect([...problemsOfLock(lock), ...problemsOfInstall(lock), ...problemsOfLicences(shipped)]).toEqual([]);
  });

  const [first] = lock.packages;
  if (!first) throw new Error("The lock file is empty");
  const lockWith = (change: object) => ({ asked: new Map<string, string>(), packages: [{ ...first, ...change }] });
  test.each([
    ["a range", { version: "^1.0.0" }, /is no version/],
    ["another source", { source: "git+ssh://git@example.com/a.git" }, /does not come from the registry/],
    ["no hash", { integrity: "" }, /has no SHA-512/],
    ["a weaker hash", { integrity: `sha1-${"A".repeat(27)}=` }, /has no SHA-512/],
  ])("names %s", (_, change, problem) => {
    expect(problemsOfLock(lockWith(change))).toEqual([expect.stringMatching(problem)]);
  });

  test("names a direct dependency that is not pinned", () => {
    const asked = new Map([["elysia", "^1.4.0"]]);
    expect(problemsOfLock({ asked, packages: [] })).toEqual(["elysia is not pinned in package.json"]);
  });

  test("names what is installed in another version, or not at all", () => {
    expect(problemsOfInstall(lockWith({ version: "999.0.0" }))).toEqual([expect.stringMatching(/locked as 999\.0\.0/)]);
    const missing = { path: "no-such-package", name: "no-such-package", isForSomePlatform: false };
    expect(problemsOfInstall(lockWith(missing))).toEqual(["no-such-package is not installed"]);
  });
});

test("the table of dependencies has every package that package.json asks for", () => {
  const page = readFileSync(resolve(dirname(import.meta.dir), "../CONTRIBUTING.md"), "utf8");
  const asked = Object.keys({
    ...manifest.dependencies,
    ...manifest.devDependencies,
    ...manifest.optionalDependencies,
  });
  expect(asked.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});
