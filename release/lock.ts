import { readFileSync } from "node:fs";
import { join } from "node:path";

export const root = join(import.meta.dir, "..");

/** A package as bun.lock pins it. */
export interface LockedPackage {
  readonly name: string;
  readonly version: string;
  /** Below `node_modules`: `elysia`, or `a/b` for the `b` that only `a` has. */
  readonly path: string;
  /** Address of another source than the npm registry; empty for that. */
  readonly source: string;
  /** `sha512-…` over the archive from the registry. */
  readonly integrity: string;
  readonly dependencies: readonly string[];
  /** Other platforms do without it. */
  readonly isForSomePlatform: boolean;
}

interface LockFile {
  workspaces: { "": Asked };
  packages: Record<string, [id: string, source: string, meta: PackageMeta, integrity: string]>;
}

/** What package.json asks for, as the lock file repeats it. */
interface Asked {
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
  optionalDependencies: Record<string, string>;
}

interface PackageMeta {
  dependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
  os?: unknown;
  cpu?: unknown;
}

export interface Lock {
  /** Name → version of what package.json asks for. */
  readonly asked: ReadonlyMap<string, string>;
  readonly packages: readonly LockedPackage[];
}

export function readLock(text = readFileSync(join(root, "bun.lock"), "utf8")): Lock {
  const { workspaces, packages } = Bun.JSONC.parse(text) as LockFile;
  const { dependencies, devDependencies, optionalDependencies } = workspaces[""];
  return {
    asked: new Map(Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies })),
    packages: Object.entries(packages).map(([path, [id, source, meta, integrity]]) => ({
      name: id.slice(0, id.lastIndexOf("@")),
      version: id.slice(id.lastIndexOf("@") + 1),
      path,
      source,
      integrity,
      dependencies: Object.keys({ ...meta.dependencies, ...meta.peerDependencies }),
      isForSomePlatform: meta.os !== undefined || meta.cpu !== undefined,
    })),
  };
}

/** Each once: one version may be installed in the folders of several others. */
export const distinct = (packages: readonly LockedPackage[]): LockedPackage[] => [
  ...new Map(packages.map((one) => [`${one.name}@${one.version}`, one])).values(),
];

/** The folder of an installed package; one that only another has lies below that. */
export const folderOf = ({ path }: Pick<LockedPackage, "path">): string =>
  join(root, ...(path.match(/@[^/]+\/[^/]+|[^/]+/g) ?? []).flatMap((name) => ["node_modules", name]));
