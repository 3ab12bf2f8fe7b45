import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { acceptedLicences, manifestOf, noticesOf } from "./licences.ts";
import { folderOf, type Lock, type LockedPackage, readLock, root } from "./lock.ts";
import { findShipped } from "./shipped.ts";

/**
 * `bun run audit`: is what the lock file pins what is installed and shipped, may it be shipped, and is nothing known against
 * it. The last is asked of the registry; `--offline` leaves it out, and without that a registry that does not answer is a
 * failure, because nobody would notice a check that silently stopped.
 */

/** What is wrong with the lock file itself: a package that could be another one tomorrow. */
export function problemsOfLock({ asked, packages }: Lock): string[] {
  return [
    ...[...asked].filter(([, version]) => !isExact(version)).map(([name]) => `${name} is not pinned in package.json`),
    ...packages.flatMap(({ name, version, source, integrity }) => [
      ...(isExact(version) ? [] : [`${name}: ${version} is no version`]),
      ...(source === "" ? [] : [`${name} does not come from the registry, but from ${source}`]),
      ...(/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity) ? [] : [`${name} has no SHA-512`]),
    ]),
  ];
}

const isExact = (version: string) => /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$/.test(version);

/** What is installed in another version than the lock file says, or not at all. */
export function problemsOfInstall({ packages }: Lock): string[] {
  return packages.flatMap((one) => {
    if (!existsSync(join(folderOf(one), "package.json"))) {
      return one.isForSomePlatform ? [] : [`${one.path} is not installed`];
    }
    const { version } = manifestOf(one);
    return version === one.version ? [] : [`${one.path} is installed as ${version}, and locked as ${one.version}`];
  });
}

/** What may not be shipped with this program, or not without more than its notice. */
export function problemsOfLicences(shipped: readonly LockedPackage[]): string[] {
  return shipped.flatMap((one) => {
    const { license = "none" } = manifestOf(one);
    if (!acceptedLicences.has(license)) return [`${one.name} is under ${license}`];
    try {
      noticesOf(one);
      return [];
    } catch (error) {
      return [error instanceof Error ? error.message : String(error)];
    }
  });
}

/** The direct dependencies as package.json has them, which the lock file must have alike. */
function problemsOfManifest({ asked }: Lock): string[] {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const { dependencies, devDependencies, optionalDependencies } = manifest;
  const wanted = Object.entries<string>({ ...dependencies, ...devDependencies, ...optionalDependencies });
  const isSame = wanted.length === asked.size && wanted.every(([name, version]) => asked.get(name) === version);
  return isSame ? [] : ["bun.lock does not belong to package.json; run bun install"];
}

/** `bun audit`, which asks the registry what is known against each locked version. */
async function askRegistry(): Promise<string[]> {
  const audit = Bun.spawn([process.execPath, "audit"], { cwd: root, stdout: "pipe", stderr: "pipe" });
  const said = (await Promise.all([new Response(audit.stdout).text(), new Response(audit.stderr).text()])).join("");
  return (await audit.exited) === 0 ? [] : [`bun audit: ${said.trim()}`];
}

async function main(): Promise<void> {
  const say = (line: string) => process.stdout.write(`${line}\n`);
  const lock = readLock();
  const shipped = await findShipped();
  const licences = [...new Set(shipped.map((one) => manifestOf(one).license))].sort().join(", ");
  const isOffline = process.argv.includes("--offline");
  const problems = [
    ...problemsOfManifest(lock),
    ...problemsOfLock(lock),
    ...problemsOfInstall(lock),
    ...problemsOfLicences(shipped),
    ...(isOffline ? [] : await askRegistry()),
  ];
  say(`locked     ${lock.packages.length} packages`);
  say(`shipped    ${shipped.length} packages, under ${licences}`);
  say(`known bugs ${isOffline ? "not asked for (--offline)" : "asked of the registry"}`);
  for (const problem of problems) say(`PROBLEM    ${problem}`);
  say(problems.length === 0 ? "nothing found" : `${problems.length} found`);
  if (problems.length > 0) process.exitCode = 1;
}

if (import.meta.main) await main();
