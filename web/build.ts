import { mkdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { type BunPlugin, gzipSync } from "bun";

/**
 * Bundles the dashboard and the operator's page into `dist/web`: each gets a page, plus a script and a stylesheet in
 * `assets/` whose names contain a hash of their content, so that browsers may cache them forever. They are stored as gzip
 * under those names, because every browser accepts gzip, and compressing them on each machine at each start would cost
 * more than the start itself. libdeflate searches harder for repetition than zlib does, and saves 4 %.
 */

const root = join(import.meta.dir, "..");
const out = join(root, "dist", "web");

/**
 * uPlot 1.6.32 asks for the number format of the browser's language when it loads, and crashes, taking the page with it,
 * if that language is invalid: Linux with LANG=C says `en-US@posix` (leeoniya/uPlot#1054, fixed after that version). We
 * format the numbers ourselves.
 */
const anyLanguage = ["domEnv ? nav.language : 'en-US'", "'en-US'"] as const;

/**
 * Features of uPlot that none of our charts has: once nothing refers to them, or what decides about them is a constant, the
 * bundler drops them: legends, times as text, scatter plots, and scales that are neither linear nor logarithmic.
 */
const unused: readonly (readonly [found: string | RegExp, instead: string])[] = [
  ["(paths.stepped = stepped);", ""],
  ["(paths.spline  = monotoneCubic);", ""],
  ["uPlot.join = join;", ""],
  ["uPlot.fmtDate = fmtDate;", ""],
  ["uPlot.rangeAsinh = rangeAsinh;", ""],
  [/const _(fmtDate|timeAxisVals|timeSeriesVal) +=.*/g, ""],
  [/isTime \? \(isStr\(sv\) .* : sv \|\| numSeriesVal;/, "sv;"],
  [/isArr\(av\) && !isArr\(av\[0\]\)[^;]*: av \|\| numAxisVals/, "av || numAxisVals"],
  ["const showLegend = legend.show;", ""],
  [/\bshowLegend\b/g, "false"],
  [/\tfunction initLegendRow\([\s\S]*?\n\t}\n/, ""],
  [/\bmode == 1\b/g, "true"],
  [/\bmode == 2\b/g, "false"],
  [/\b(\w+\.)?distr == {1,2}(2|4|100)\b/g, "false"],
  [/\b(\w+\.)?distr != 2\b/g, "true"],
];

const ownPlot: BunPlugin = {
  name: "own plot",
  setup(build) {
    build.onLoad({ filter: /uPlot\.esm\.js$/ }, async ({ path }) => {
      let contents = await Bun.file(path).text();
      for (const [found, instead] of [anyLanguage, ...unused]) {
        const changed = contents.replace(found, instead);
        if (changed === contents) throw new Error(`uPlot is written in another way now: no ${found}`);
        contents = changed;
      }
      return { contents, loader: "js" };
    });
  },
};

/**
 * tweetnacl 1.0.3 is a single function containing a single object, which no bundler can tree-shake: 19 KB, of which
 * checking a signature needs a third. Rewritten as a module of just that, whatever it does not call is dropped.
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
  /** The base name of its files, before the hash. */
  readonly name: string;
  readonly entry: string;
  readonly page: string;
  /** What a visitor on a slow connection waits for, in bytes: page, script and stylesheet as they are sent. */
  readonly largestWeight: number;
}

/** What only the operator sees adds no weight for anybody else. */
const bundles: readonly Bundle[] = [
  { name: "postrider", entry: "main.tsx", page: "index.html", largestWeight: 125_000 },
  { name: "operator", entry: "operator/main.tsx", page: "operator.html", largestWeight: 60_000 },
];

/** Script and stylesheet, and in `metafile` what they were made from. */
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
