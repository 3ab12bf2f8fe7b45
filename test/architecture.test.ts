import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { Glob } from "bun";
import {
  failureCodes,
  type NoResponseCause,
  noWebhook,
  serverRestored,
  unanswered,
  unreadable,
  webhookDisabled,
  webhookRemoved,
} from "../src/domain/failure.ts";

const root = resolve(import.meta.dir, "..");
const src = join(root, "src");
const files = [...new Glob("**/*.ts").scanSync(src)].filter((file) => !file.endsWith(".d.ts")).sort();
const transpiler = new Bun.Transpiler({ loader: "ts" });

/** What a file imports at run time; types alone bind nothing. */
const importsOf = (file: string) =>
  transpiler.scanImports(readFileSync(join(src, file), "utf8")).map(({ path }) => path);

/** Its imports of our own files, relative to `src`. */
const ownImportsOf = (file: string) =>
  importsOf(file)
    .filter((path) => path.startsWith("."))
    .map((path) => relative(src, resolve(src, dirname(file), path)));

/** As `ownImportsOf`, with those of types. */
const typesAndImportsOf = (file: string) =>
  [...readFileSync(join(src, file), "utf8").matchAll(/ from "(\..*?)"/g)].map(([, path = ""]) =>
    relative(src, resolve(src, dirname(file), path)),
  );

const everywhereBut = (...allowed: (string | RegExp)[]) =>
  files.filter((file) => !allowed.some((rule) => (typeof rule === "string" ? file === rule : rule.test(file))));

const features = [
  "events",
  "replays",
  "stream",
  "webhooks",
  "accounts",
  "delivery",
  "maintenance",
  "billing",
  "inbox",
  "backup",
];

describe("imports point one way", () => {
  test("there is something to check", () => {
    expect(files.length).toBeGreaterThan(50);
  });

  test.each(everywhereBut("api.ts", "app.ts", /^http\/document\//))("%s does not know Elysia", (file) => {
    expect(importsOf(file).filter((path) => path === "elysia" || path.startsWith("@elysiajs/"))).toEqual([]);
  });

  test.each(everywhereBut(/^store\/(sqlite|postgres)\//))("%s does not know drizzle", (file) => {
    expect(importsOf(file).filter((path) => path.startsWith("drizzle-orm"))).toEqual([]);
  });

  test("the query builder is used where docs/architecture.md says, and nowhere else", () => {
    const section = readFileSync(join(root, "docs/architecture.md"), "utf8").split("\n## SQL\n")[1] ?? "";
    const said = (section.split("- **Raw statements")[0] ?? "").matchAll(/`([\w-]+\.ts)`/g);
    const inSqlite = files.filter((file) => file.startsWith("store/sqlite/") && !file.endsWith("schema.ts"));
    const using = inSqlite.filter((file) => importsOf(file).includes("drizzle-orm"));
    expect(using).toEqual([...said].map(([, name]) => `store/sqlite/${name}`));
  });

  // What is kept of accounts and API keys is let go when a change of their rows is told. Those of a deleted account are
  // erased once its deletion was.
  const tellsChanges = ["credentials.ts", "tenant-rows.ts", "tenants.ts"].map((name) => `store/sqlite/${name}`);
  /** Counts their versions, for all that is told. */
  const countsVersions = "store/postgres/writes.ts";
  test("the rows of accounts and API keys are changed by those who tell it, and by nobody else", () => {
    const writes =
      /update (tenant|api_key)\b|delete from api_key\b|createPatch<[^(]*\(client, "(tenant|api_key)"|\.(update|delete)\(t\.(tenant|apiKey)\)/;
    const writers = files.filter((file) => writes.test(readFileSync(join(src, file), "utf8")));
    expect(writers.filter((file) => file.startsWith("store/sqlite/")).sort()).toEqual(tellsChanges);
    expect(writers).toContain(countsVersions);
    for (const file of writers.filter((file) => file !== countsVersions))
      expect(readFileSync(join(src, file), "utf8")).toContain("tx.changed(");
  });

  const ofSqlite = [/^store\/(sqlite|move|backup)\//, "store/open.ts"];
  test.each(everywhereBut(...ofSqlite, "folder-lock.ts"))("%s opens no SQLite database", (file) => {
    expect(importsOf(file)).not.toContain("bun:sqlite");
  });
  test.each(everywhereBut(...ofSqlite, /^data-dir(-copy)?\.ts$/))("%s does not know SQLite", (file) => {
    expect(typesAndImportsOf(file).filter((path) => path.startsWith("store/sqlite/"))).toEqual([]);
  });

  // Otherwise one with an open statement lives on, and as the process ends its log is written into the file, wherever that is
  // by then.
  test("connections to SQLite databases are closed by force", () => {
    const gently = /\b(client|connection|reading|writing|checkpointing)\??\.close\(\)/;
    const closing = files.filter((file) => /^store\/(sqlite|move|backup)\//.test(file));
    expect(closing.filter((file) => gently.test(readFileSync(join(src, file), "utf8")))).toEqual([]);
  });

  test.each(everywhereBut(/^data-dir(-copy)?\.ts$/, /^cli\//))("%s does not know who keeps the secrets", (file) => {
    expect(typesAndImportsOf(file)).not.toContain("data-dir.ts");
  });

  test.each(everywhereBut(/^store\/(postgres|move)\//, "store/open.ts"))("%s does not know PostgreSQL", (file) => {
    expect(typesAndImportsOf(file).filter((path) => path.startsWith("store/postgres/"))).toEqual([]);
    expect(readFileSync(join(src, file), "utf8")).not.toMatch(/\bnew (Bun\.)?SQL\(|\bBun\.sql\b/);
  });

  test("only these open connections to PostgreSQL", () => {
    const opening = files.filter((file) => /\bnew SQL\(/.test(readFileSync(join(src, file), "utf8")));
    expect(opening).toEqual(["store/postgres/listener.ts", "store/postgres/pool.ts"]);
  });

  const outbound = [
    /^delivery\/network\/(exchange|connection|dialler|transport|resolver|tunnel)\.ts$/,
    "billing/paystack/http.ts",
    "billing/sandbox/callback-sender.ts",
    // To the SMTP server that the operator has named: nothing that an account says leads there, or anywhere else.
    "mail/post.ts",
    /^cli\//,
  ];
  test.each(everywhereBut(...outbound))("%s opens no outbound connection", (file) => {
    const text = readFileSync(join(src, file), "utf8");
    expect(importsOf(file).filter((path) => /^node:(https?|net|tls|dgram)$/.test(path))).toEqual([]);
    expect(text).not.toMatch(/(?<![.\w])fetch\(/);
    expect(text).not.toMatch(/["']nodemailer["']/);
  });

  test.each(everywhereBut("main.ts", /^cli\//))("%s does not read the environment", (file) => {
    expect(readFileSync(join(src, file), "utf8")).not.toMatch(/process\.env|Bun\.env/);
  });

  // In a Worker `process.exit` ends the Worker.
  test.each(everywhereBut("main.ts", /-worker\.ts$/))("%s does not end the process", (file) => {
    expect(readFileSync(join(src, file), "utf8")).not.toContain("process.exit(");
  });

  test.each(everywhereBut("lib/clock.ts", "store/sqlite/writer.ts"))("%s takes its time from the clock", (file) => {
    const allowed = file === "lib/iso-time.ts" || file.startsWith("cli/");
    const text = readFileSync(join(src, file), "utf8");
    if (!allowed) expect(text).not.toMatch(/Date\.now\(\)|new Date\(\)|performance\.now\(\)/);
    expect(text).not.toContain("CURRENT_TIMESTAMP");
  });

  test.each(files.filter((file) => file.startsWith("lib/")))("%s knows nothing of us", (file) => {
    expect(ownImportsOf(file).filter((path) => !path.startsWith("lib/"))).toEqual([]);
  });

  test.each(files.filter((file) => file.startsWith("domain/")))(
    "%s decides, and knows nothing but the domain",
    (file) => {
      const known = /^(domain|lib)\//;
      expect(importsOf(file).filter((path) => !path.startsWith("."))).toEqual([]);
      expect(typesAndImportsOf(file).filter((path) => !known.test(path))).toEqual([]);
    },
  );

  test("no file leads back to itself, by its types either", () => {
    const circles: string[] = [];
    const seen = new Map<string, "open" | "done">();
    function follow(file: string, path: readonly string[]): void {
      if (seen.get(file) === "open") circles.push([...path.slice(path.indexOf(file)), file].join(" → "));
      if (seen.has(file)) return;
      seen.set(file, "open");
      for (const next of typesAndImportsOf(file)) if (files.includes(next)) follow(next, [...path, file]);
      seen.set(file, "done");
    }
    for (const file of files) follow(file, []);
    expect(circles).toEqual([]);
  });

  test.each(files.filter((file) => file.startsWith("store/")))("%s knows no feature", (file) => {
    expect(ownImportsOf(file).filter((path) => features.includes(path.split("/")[0] ?? ""))).toEqual([]);
  });

  test.each(["api.ts", "listener.ts", "http/cross-site-guard.ts", "http/respond.ts"])(
    "%s recognises no route by its path: endpoints say what is special about them",
    (file) => {
      expect(readFileSync(join(src, file), "utf8")).not.toMatch(/["'`]\/(v1|pay|operator|events|inbox)\b/);
      expect(typesAndImportsOf(file).filter((path) => features.includes(path.split("/")[0] ?? ""))).toEqual([]);
    },
  );

  test.each(everywhereBut("main.ts", "app.ts", /^cli\//))("%s does not build the program", (file) => {
    expect(ownImportsOf(file)).not.toContain("app.ts");
  });

  const pieces = ["server", "server-address", "billing/billing", "delivery/outbound", "maintenance/machine-watch"];
  test.each(everywhereBut("app.ts"))("%s builds no piece of the program", (file) => {
    expect(ownImportsOf(file).filter((path) => pieces.some((piece) => path === `${piece}.ts`))).toEqual([]);
  });

  const parts = ["announce", "deliver", "queue/dispatcher", "failure-log"].map((name) => `delivery/${name}.ts`);
  const loops = ["maintenance/janitor.ts", "replays/progress.ts", "replays/replayer.ts"];
  test.each(everywhereBut("engine.ts"))("%s builds no part of the engine", (file) => {
    expect(ownImportsOf(file).filter((path) => [...parts, ...loops].includes(path))).toEqual([]);
  });

  test("nothing builds the engine but the program, the simulation and its own test", () => {
    const inTests = [...new Glob("**/*.ts").scanSync(join(root, "test"))].map((file) => join(root, "test", file));
    const builders = [...files.map((file) => join(src, file)), ...inTests].filter((file) =>
      transpiler.scanImports(readFileSync(file, "utf8")).some(({ path }) => /(^|\/)engine\.ts$/.test(path)),
    );
    expect(builders.map((file) => relative(root, file)).sort()).toEqual([
      "src/app.ts",
      "test/engine.test.ts",
      "test/labs/sim/delivery/incarnation.ts",
    ]);
  });
});

describe("no circle", () => {
  /** Files that put a room together. Nothing in the room imports them, so each counts as a room of its own. */
  const doors = {
    src: ["billing/billing.ts", "cli/commands.ts", "cli/load-commands.ts", "cli/run.ts", "store/open.ts"],
    web: [],
    test: ["labs/sim/billing.ts", "labs/sim/delivery.ts"],
  };
  type Tree = keyof typeof doors;
  const trees = Object.keys(doors) as Tree[];

  /** What each file of a tree imports of it, types included. */
  function importsIn(tree: Tree): Map<string, string[]> {
    const folder = join(root, tree);
    const inTree = new Set([...new Glob("**/*.{ts,tsx}").scanSync(folder)].filter((file) => !file.endsWith(".d.ts")));
    const read = (file: string) =>
      [...readFileSync(join(folder, file), "utf8").matchAll(/(?:from|import|import\() ?"(\..*?)"/g)]
        .map(([, path = ""]) => relative(folder, resolve(folder, dirname(file), path)))
        .filter((path) => inTree.has(path));
    return new Map([...inTree].map((file) => [file, read(file)]));
  }

  function roomsIn(tree: Tree): Map<string, Set<string>> {
    const isDoor = (file: string) => (doors[tree] as string[]).includes(file) || dirname(file) === ".";
    const roomOf = (file: string) => (isDoor(file) ? file : `${dirname(file)}/`);
    const rooms = new Map<string, Set<string>>();
    for (const [file, paths] of importsIn(tree)) {
      const others = rooms.get(roomOf(file)) ?? new Set();
      for (const path of paths) if (roomOf(path) !== roomOf(file)) others.add(roomOf(path));
      rooms.set(roomOf(file), others);
    }
    return rooms;
  }

  /** What can be reached from itself. */
  function circlesIn(graph: ReadonlyMap<string, Iterable<string>>): string[] {
    return [...graph.keys()].filter((start) => {
      const seen = new Set<string>();
      const open = [...(graph.get(start) ?? [])];
      for (let next = open.pop(); next !== undefined; next = open.pop()) {
        if (seen.has(next)) continue;
        seen.add(next);
        open.push(...(graph.get(next) ?? []));
      }
      return seen.has(start);
    });
  }

  test("is missed", () => {
    expect(circlesIn(new Map(Object.entries({ a: ["b"], b: ["c"], c: ["b"], d: ["a"] })))).toEqual(["b", "c"]);
  });

  test.each(trees)("among the files of %s", (tree) => {
    expect(circlesIn(importsIn(tree))).toEqual([]);
  });

  test.each(trees)("among the rooms of %s", (tree) => {
    expect(roomsIn(tree).size).toBeGreaterThan(10);
    expect(circlesIn(roomsIn(tree))).toEqual([]);
  });

  test.each(trees.flatMap((tree) => doors[tree].map((file) => [tree, file] as const)))(
    "%s/%s is a door that nothing in its room uses but another door",
    (tree, file) => {
      const room = `${dirname(file)}/`;
      const users = [...importsIn(tree)].filter(([other, paths]) => other.startsWith(room) && paths.includes(file));
      expect(users.map(([other]) => other).filter((other) => !(doors[tree] as string[]).includes(other))).toEqual([]);
    },
  );
});

/** What is loaded before the program does anything: a dynamic import waits until its line is reached. */
function loadedWith(file: string, loaded = new Set<string>()): Set<string> {
  if (loaded.has(file)) return loaded;
  loaded.add(file);
  for (const { path, kind } of transpiler.scanImports(readFileSync(join(src, file), "utf8"))) {
    const isOurs = path.startsWith(".") && path.endsWith(".ts");
    if (isOurs && kind === "import-statement") loadedWith(relative(src, resolve(src, dirname(file), path)), loaded);
  }
  return loaded;
}

describe("a start of the server", () => {
  const programOf = (command: string) => [...loadedWith("cli/run.ts"), ...loadedWith(command)];

  test("loads the server, and neither the other commands nor what writes the document", () => {
    const loaded = programOf("cli/serve.ts");
    expect(loaded).toContain("app.ts");
    expect(
      loaded.filter((file) => /^cli\/(commands|(demo|listen|send|selftest)\/)|^http\/document\/(?!path)/.test(file)),
    ).toEqual([]);
  });

  test("does not load the system's data of languages and zones", () => {
    const made = /^const \w+ = new Intl\./m;
    expect(programOf("cli/serve.ts").filter((file) => made.test(readFileSync(join(src, file), "utf8")))).toEqual([]);
  });
});

describe("a check of the health, which a container makes every ten seconds", () => {
  test("loads neither the server nor the database", () => {
    const loaded = [...loadedWith("cli/run.ts"), ...loadedWith("cli/healthcheck.ts")];
    expect(loaded).toContain("cli/http-client.ts");
    expect(loaded.filter((file) => /^(app|server)\.ts$|^(store|http|events|billing)\//.test(file))).toEqual([]);
  });
});

describe("the sentence of a failure is for people, and programs go by its code:", () => {
  const all = new Glob("{src,web}/**/*.{ts,tsx}");
  const sources = [...all.scanSync(root)].filter((file) => !file.endsWith(".d.ts")).sort();
  const textOf = (file: string) => readFileSync(join(root, file), "utf8");
  const catalogue = "src/domain/failure.ts";

  /** What is before the URL, or the whole sentence. */
  const beginnings = Object.keys(failureCodes)
    .filter((code) => code !== "http_status")
    .map((code) => {
      const stored = [noWebhook, webhookRemoved, webhookDisabled, serverRestored, unreadable].find(
        (failure) => failure.code === code,
      );
      return (stored ?? unanswered(code as NoResponseCause, undefined, "URL")).reason.split("URL")[0] ?? "";
    });

  test("each begins in a way of its own", () => {
    expect(new Set(beginnings).size).toBe(Object.keys(failureCodes).length - 1);
    for (const beginning of beginnings) expect(beginning.length).toBeGreaterThan(10);
  });

  const writesIt = (text: string) => beginnings.filter((beginning) => text.includes(beginning));
  // Written with a status that is only known at run time, or looked for with a pattern.
  const answered = /HTTP (?:\$\{|\(|\\d)[^\n]*? from /;

  test.each(sources.filter((file) => file !== catalogue))("%s neither writes one nor looks for one", (file) => {
    expect(writesIt(textOf(file))).toEqual([]);
    expect(textOf(file)).not.toMatch(answered);
  });

  test("they stand in the catalogue, and what looks for one would be found", () => {
    expect(textOf(catalogue)).toMatch(answered);
    const earlier = "if (/^Connection refused by /.test(errorReason)) …; /^HTTP (\\d{3}) from /.exec(errorReason)";
    expect([writesIt(earlier), answered.test(earlier)]).toEqual([["Connection refused by "], true]);
  });

  /** Fields and parameters that hold a sentence. */
  const sentence = String.raw`\b(?:errorReason|lastError|reason|message|detail|error)\b`;
  const looks = "match|matchAll|search|startsWith|endsWith|includes|(?:lastI|i)ndexOf|split|slice|substring|charAt|at";
  const read = new RegExp(
    [
      String.raw`${sentence}[?!]?\.(?:${looks})\(`,
      // What is known, such as a URL, may be left out of one; what is looked for stands in the call.
      String.raw`${sentence}[?!]?\.replace(?:All)?\(["'\`/]`,
      String.raw`\.(?:test|exec)\((?:\w+\.)*${sentence}(?!\.)`,
      String.raw`(?<!typeof (?:\w+\.)*)${sentence} [!=]==? ["'\`]`,
    ].join("|"),
  );

  test.each([
    "if (errorReason.startsWith(prefix)) {",
    "const rule = refused.error.message.slice(name.length);",
    'attempt.refusal?.message.replace(/; verify .*$/, ".")',
    'const [code, ...words] = issue.message.split(" ");',
    "/^HTTP/.exec(record.lastError)",
    'if (message === "Too many failed logins.") {',
  ])("one that is read would be found: %s", (line) => expect(line).toMatch(read));

  test.each(["reason.replaceAll(url, host)", 'if (typeof message === "string") {', "say(error.message);"])(
    "one that is passed on is not read: %s",
    (line) => expect(line).not.toMatch(read),
  );

  // What a processor says is read for want of a code.
  test.each(sources.filter((file) => !file.startsWith("src/billing/paystack/")))(
    "%s branches on no sentence",
    (file) => {
      expect(
        textOf(file)
          .split("\n")
          .filter((line) => read.test(line)),
      ).toEqual([]);
    },
  );
});

describe("the dashboard", () => {
  const web = join(root, "web");
  const pages = [...new Glob("**/*.{ts,tsx}").scanSync(web)]
    .filter((file) => !/^build\.ts$|\.d\.ts$/.test(file))
    .sort();
  const textOf = (file: string) => readFileSync(join(web, file), "utf8");
  const scan = new Bun.Transpiler({ loader: "tsx" });

  test.each(pages)("web/%s takes types from the server, and nothing else", (file) => {
    const imported = scan.scanImports(textOf(file)).map(({ path }) => resolve(web, dirname(file), path));
    expect(imported.filter((path) => path.startsWith(src))).toEqual([]);
  });

  test.each(pages)("web/%s never turns text into markup, and keeps nothing beyond the tab", (file) => {
    expect(textOf(file)).not.toMatch(
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|localStorage|document\.cookie/,
    );
  });

  test.each(pages.filter((file) => !["api/client.ts", "stream/stream.ts"].includes(file)))(
    "web/%s speaks to the server through the client",
    (file) => {
      expect(textOf(file)).not.toMatch(/(?<![.\w])fetch\(|XMLHttpRequest|EventSource\(|WebSocket/);
    },
  );
});
