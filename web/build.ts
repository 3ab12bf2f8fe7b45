import { mkdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { type BunPlugin, gzipSync } from "bun";

/**
 * Bundles the dashboard and the operator's page into `dist/web`: for each a page, and in `assets/` a script and a style whose
 * names hold a hash of their content, so that browsers may keep them for ever. They are stored as gzip under those names,
 * because that is how every browser takes them, and compressing them on each machine at each start would cost more than the
 * start. libdeflate looks longer for what repeats than zlib does, and saves 4 %.
 */

const root = join(import.meta.dir, "..");
const out = join(root, "dist", "web");

/**
 * uPlot 1.6.32 asks for the numbers of the browser's language as it is loaded, and dies, and the page with it, of one that
 * is none: Linux with LANG=C says `en-US@posix` (leeoniya/uPlot#1054, fixed after that version). We write the numbers
 * ourselves.
 */
const anyLanguage = ["domEnv ? nav.language : 'en-US'", "'en-US'"] as const;

/** What uPlot offers and no chart of ours draws or calls falls away once nothing names it. */
const unused = ["(paths.stepped = stepped);", "(paths.spline  = monotoneCubic);", "uPlot.join = join;"];

const ownPlot: BunPlugin = {
  name: "own plot",
  setup(build) {
    build.onLoad({ filter: /uPlot\.esm\.js$/ }, async ({ path }) => {
      let contents = await Bun.file(path).text();
      for (const [found, instead] of [anyLanguage, ...unused.map((line) => [line, ""] as const)]) {
        if (!contents.includes(found)) throw new Error(`uPlot is written in another way now: no ${found}`);
        contents = contents.replace(found, instead);
      }
      return { contents, loader: "js" };
    });
  },
};

/**
 * tweetnacl 1.0.3 is one function with one object in it, of which no bundler leaves anything out: 19 KB, of which checking a
 * signature needs a third. As a module of that alone, what it does not call falls away.
 */
const onlySignatures: BunPlugin = {
  name: "only signatures",
  setup(build) {
    build.onLoad({ filter: /tweetnacl\/nacl\.js$/ }, async ({ path }) => {
      const text = await Bun.file(path).text();
      const between = (from: string, to: string) => {
        const [before, found] = [text.indexOf(from), text.indexOf(to, text.indexOf(from))];
        if (before < 0 || found < 0) throw new Error(`tweetnacl is written in another way now: no ${from}`);
        return text.slice(before, found);
      };
      const contents = [
        "const nacl = { sign: { detached: {} } };",
        between("var u64 = ", "nacl.lowlevel = {"),
        between("function checkArrayTypes", "function cleanup"),
        between("nacl.sign.detached.verify = ", "nacl.sign.keyPair = "),
        between("nacl.sign.publicKeyLength = ", "nacl.sign.secretKeyLength = "),
        between("nacl.sign.signatureLength = ", "nacl.hash = "),
        "export default nacl;",
      ];
      return { contents: contents.join("\n"), loader: "js" };
    });
  },
};

interface Bundle {
  /** What its files are called, before a hash. */
  readonly name: string;
  readonly entry: string;
  readonly page: string;
  /** What a visitor on a slow line waits for, in bytes: page, script and style as they are sent. */
  readonly largestWeight: number;
}

/** What the operator alone sees is no weight for everybody else. */
const bundles: readonly Bundle[] = [
  { name: "postrider", entry: "main.tsx", page: "index.html", largestWeight: 120_000 },
  { name: "operator", entry: "operator/main.tsx", page: "operator.html", largestWeight: 60_000 },
];

/** Script and style, and in `metafile` what they were made of. */
const bundle = ({ name, entry }: Bundle) =>
  Bun.build({
    entrypoints: [join(import.meta.dir, entry)],
    target: "browser",
    minify: true,
    naming: `${name}-[hash].[ext]`,
    plugins: [ownPlot, onlySignatures],
    define: { "process.env.NODE_ENV": '"production"' },
    metafile: true,
  });

export const bundleWeb = () => Promise.all(bundles.map(bundle));

export async function buildWeb(): Promise<void> {
  await rm(out, { recursive: true, force: true });
  await mkdir(join(out, "assets"), { recursive: true });
  for (const each of bundles) await write(each);
}

async function write(given: Bundle): Promise<void> {
  const { name, page: pageFile, largestWeight } = given;
  const { outputs } = await bundle(given);
  const nameOf = (extension: string) => {
    const found = outputs.find(({ path }) => path.endsWith(extension));
    if (!found) throw new Error(`${name} has no ${extension}`);
    return basename(found.path);
  };
  const template = await Bun.file(join(import.meta.dir, "index.html")).text();
  const page = template.replace("{{style}}", nameOf(".css")).replace("{{script}}", nameOf(".js"));
  await Bun.write(join(out, pageFile), page);
  let weight = Buffer.byteLength(page);
  for (const output of outputs) {
    const packed = gzipSync(new Uint8Array(await output.arrayBuffer()), { library: "libdeflate", level: 12 });
    await Bun.write(join(out, "assets", basename(output.path)), packed);
    weight += packed.length;
  }
  process.stdout.write(`dist/web/${pageFile}  ${(weight / 1000).toFixed(1)} KB compressed\n`);
  if (weight > largestWeight) throw new Error(`${pageFile} weighs ${weight} bytes, and ${largestWeight} is the limit`);
}

if (import.meta.main) {
  await buildWeb().catch((error: unknown) => {
    process.stderr.write(`${error instanceof AggregateError ? error.errors.join("\n") : error}\n`);
    process.exitCode = 1;
  });
}
