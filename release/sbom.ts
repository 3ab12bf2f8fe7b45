import { version } from "../src/version.ts";
import { manifestOf } from "./licences.ts";
import { distinct, type LockedPackage } from "./lock.ts";

/** A package URL (purl-spec): a scope is a name space, and its @ is escaped. */
const purlOf = ({ name, version }: { name: string; version: string }) =>
  `pkg:npm/${name.replace(/^@/, "%40")}@${version}`;

const own = { name: "postrider", version };

/**
 * The bill of materials of the executable, CycloneDX 1.6: each package with its version, its licence, where it comes from,
 * and the hash that bun.lock holds its archive to. It is the same for the same lock file: no time, no serial number.
 */
export function writeSbom(shipped: readonly LockedPackage[]): string {
  const byPath = new Map(shipped.map((one) => [one.path, one]));
  /** One within the other's own folder comes first. */
  const dependenciesOf = ({ path, dependencies }: LockedPackage) =>
    dependencies.flatMap((name) => byPath.get(`${path}/${name}`) ?? byPath.get(name) ?? []);
  const refsOf = (packages: readonly LockedPackage[]) => [...new Set(packages.map(purlOf))].sort();
  const asked = new Set(shipped.flatMap(dependenciesOf));
  const components = distinct(shipped);
  const document = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      lifecycles: [{ phase: "build" }],
      component: {
        type: "application",
        "bom-ref": purlOf(own),
        ...own,
        licenses: [{ license: { id: "MIT" } }],
      },
    },
    components: components.map(componentOf),
    dependencies: [
      { ref: purlOf(own), dependsOn: refsOf(shipped.filter((one) => !asked.has(one))) },
      ...components.map((one) => ({ ref: purlOf(one), dependsOn: refsOf(dependenciesOf(one)) })),
    ],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function componentOf(one: LockedPackage) {
  const { license } = manifestOf(one);
  const [scope, short] = one.name.startsWith("@") ? one.name.split("/") : [undefined, one.name];
  return {
    type: one.name === "bun" ? "platform" : "library",
    "bom-ref": purlOf(one),
    ...(scope !== undefined && { group: scope }),
    name: short,
    version: one.version,
    scope: "required",
    licenses: [{ license: { id: license } }],
    purl: purlOf(one),
    externalReferences: [
      {
        type: "distribution",
        url: `https://registry.npmjs.org/${one.name}/-/${short}-${one.version}.tgz`,
        hashes: [{ alg: "SHA-512", content: hexOf(one.integrity) }],
      },
    ],
  };
}

/** `sha512-<base64>` → hexadecimal */
const hexOf = (integrity: string) => Buffer.from(integrity.replace(/^sha512-/, ""), "base64").toString("hex");
