import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { Glob } from "bun";
import { commands } from "../../src/cli/commands.ts";
import { failureCodes } from "../../src/domain/failure.ts";
import { namesOf, variablesOf } from "../../src/given-settings.ts";
import { refusalCodes } from "../../src/http/refusal-codes.ts";
import { clientSettings, settings } from "../../src/settings.ts";
import { receiverPrograms } from "../support/receiver-programs.ts";
import { startTestApp } from "../support/test-app.ts";
import { anchorOf, documentAt, documents, example, headingsOf, marked, prose, root, sectionOf } from "./documents.ts";

const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const everyDocument = [...documents.keys()];

type Responses = Record<string, { content?: Record<string, { example?: { code?: string } }> }>;

const textsIn = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, found = ""]) => found);

const server = await startTestApp({ env: { POSTRIDER_PAYMENTS: "sandbox" } });
afterAll(() => server.stop());

describe("the documents", () => {
  test.each([
    ["settings", settings],
    ["client settings", clientSettings],
  ])("list all %s, as settings.ts describes them", (name, described) => {
    const rows = Object.values(described).map((setting) => {
      const { default: value, doc } = setting;
      const names = namesOf(setting).map((each) => `\`${each}\``);
      return `| ${names.join(", ")} | ${value === "" ? "" : `\`${value}\``} | ${doc} |`;
    });
    expect(marked(name)).toBe(["| Setting | Default | Meaning |", "|---|---|---|", ...rows].join("\n"));
  });

  test("name every dependency and say what it is for", () => {
    const table = sectionOf(documentAt("CONTRIBUTING.md"), "Dependencies");
    for (const name of Object.keys({ ...manifest.dependencies, ...manifest.devDependencies })) {
      expect(table).toContain(`\`${name}\``);
    }
  });

  test("name every code of a failure", () => {
    const listed = sectionOf(documentAt("docs/rules.md"), "15. Reasons, search, failures");
    for (const code of Object.keys(failureCodes)) expect(listed).toContain(`\`${code}\``);
  });

  test("list every code of an error, and no other", () => {
    expect(textsIn(documentAt("docs/errors.md"), /^\| `(\w+)` \|/gm)).toEqual([...refusalCodes]);
  });

  test("list each code of an error with the statuses that the API document shows it with", async () => {
    const listed = new Map(
      [...documentAt("docs/errors.md").matchAll(/^\| `(\w+)` \| ([\d, ]+) \|/gm)].map(
        ([, code = "", statuses = ""]) => [code, statuses.split(", ")],
      ),
    );
    const { body } = await server.request("GET", "/openapi.json");
    const shown = Object.values<Record<string, { responses: Responses }>>(body.paths)
      .flatMap((methods) => Object.values(methods))
      .flatMap(({ responses }) => Object.entries(responses))
      .flatMap(([status, { content }]) => {
        const code = content?.["application/json"]?.example?.code;
        return listed.has(code ?? "") ? [[code ?? "", status] as const] : [];
      });
    expect(shown.length).toBeGreaterThan(100);
    expect(shown.filter(([code, status]) => !listed.get(code)?.includes(status))).toEqual([]);
  });

  test("list every endpoint of the operator", () => {
    const listed = textsIn(
      sectionOf(documentAt("docs/operating.md"), "The operator's API"),
      /^\| `([A-Z]+ [^`]+)` \|/gm,
    );
    const own = server.app.endpoints
      .filter(({ path }) => path.startsWith("/operator/"))
      .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`);
    // These two are of a server that is a process of its own.
    expect(listed.toSorted()).toEqual([...own, "GET /operator/config", "POST /operator/restart"].toSorted());
  });

  test("name every event of the log", () => {
    const listed = sectionOf(documentAt("docs/operating.md"), "The log");
    const written = [...new Glob("**/*.ts").scanSync(join(root, "src"))].flatMap((file) =>
      textsIn(
        readFileSync(join(root, "src", file), "utf8"),
        // An account's standing is announced by a function of its own.
        /\b(?:log\.write|announceStanding)\([^";]*(?:"[a-z]+"[^";]*)*?"([a-z_]+\.[a-z_]+)"/g,
      ),
    );
    expect(new Set(written).size).toBeGreaterThan(80);
    expect([...new Set(written)].filter((event) => !listed.includes(`\`${event}\``))).toEqual([]);
  });

  test.each([...new Set(receiverPrograms.map(({ file }) => file))])("have the same %s as the dashboard", (file) => {
    expect(readFileSync(join(root, "web/verify", `${file}.txt`), "utf8")).toBe(example(file));
  });
});

describe("the README", () => {
  const readme = documentAt("README.md");

  test("has less than 200 lines", () => {
    expect(readme.split("\n").length).toBeLessThan(200);
  });

  const map = sectionOf(readme, "The journey of an event");

  test("draws a map of src in which every file exists", () => {
    const names = textsIn(map, /[├└]─ ([a-z.]+(?:\.ts|\/))/g);
    expect(names.length).toBeGreaterThan(10);
    expect(names.filter((name) => !existsSync(join(root, "src", name)))).toEqual([]);
  });

  test("leads an event through files that exist", () => {
    const names = textsIn(map, /^ {2}([a-z]+\/[\w-]*)/gm);
    expect(names.length).toBeGreaterThan(5);
    const isThere = (name: string) =>
      existsSync(join(root, "src", name)) || existsSync(join(root, "src", `${name}.ts`));
    expect(names.filter((name) => !isThere(name))).toEqual([]);
  });
});

test("the house that the architecture draws has the rooms and files that exist", () => {
  const [drawing = ""] = textsIn(sectionOf(documentAt("docs/architecture.md"), "The house"), /```\n([\s\S]*?)```/g);
  const inSrc = textsIn(drawing, /^ {2}([a-z][\w-]*(?:\.ts|\/)) /gm).map((name) => join("src", name));
  const besides = textsIn(drawing, /^([a-z][\w/-]*\/)(?: |$)/gm);
  expect(inSrc.length).toBeGreaterThan(15);
  expect([...inSrc, ...besides].filter((name) => !existsSync(join(root, name)))).toEqual([]);
  const rooms = readdirSync(join(root, "src"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect(rooms.map(({ name }) => name).filter((name) => !inSrc.includes(`src/${name}/`))).toEqual([]);
});

describe.each(everyDocument)("%s", (path) => {
  const text = documentAt(path);

  test("links to what is there", () => {
    const broken = textsIn(prose(text), /\]\(([^)\s]+)\)/g).filter((link) => {
      if (/^[a-z]+:/.test(link)) return false;
      const [file = "", anchor] = link.split("#");
      const target = file === "" ? path : join(dirname(path), file);
      if (!existsSync(join(root, target))) return true;
      return anchor !== undefined && !headingsOf(documentAt(target)).map(anchorOf).includes(anchor);
    });
    expect(broken).toEqual([]);
  });

  test("has no two sections of one name", () => {
    const anchors = headingsOf(text).map(anchorOf);
    expect(anchors.filter((anchor, i) => anchors.indexOf(anchor) !== i)).toEqual([]);
  });

  test("names files and folders that exist", () => {
    const named = [
      ...textsIn(text, /`((?:src|web|test|drizzle|release|docs)\/[\w./-]*)`/g),
      ...textsIn(text, /`((?:[\w-]+\/)+[\w.-]+\.(?:tsx?|sql|md))`/g),
    ];
    const isAt = (place: string) => existsSync(place) && (!place.endsWith("/") || statSync(place).isDirectory());
    const isThere = (name: string) => isAt(join(root, name)) || isAt(join(root, "src", name));
    expect(named.filter((name) => !isThere(name))).toEqual([]);
  });

  test("names scripts that package.json has", () => {
    const named = textsIn(text, /\bbun run ([a-z:]+)/g);
    expect(named.filter((name) => !(name in manifest.scripts))).toEqual([]);
  });

  test("names settings that there are", () => {
    const known: readonly string[] = [...Object.values(settings), ...Object.values(clientSettings)].flatMap(
      variablesOf,
    );
    // What a container platform sets for a service of our name, and what `npm test` takes.
    const foreign = ["POSTRIDER_SERVICE_HOST", "POSTRIDER_TEST_DATABASE_URL"];
    const named = textsIn(text, /\b(POSTRIDER_[A-Z_]+[A-Z])\b/g);
    expect(named.filter((name) => !known.includes(name) && !foreign.includes(name))).toEqual([]);
  });

  test("names commands that there are", () => {
    const words = commands.flatMap(({ words: [first = "", ...more] }) => [first, [first, ...more].join(" ")]);
    const named = textsIn(text, /(?:^|`|\/)postrider ([a-z]+(?:-[a-z]+)*(?: [a-z]+(?:-[a-z]+)*)?)/gm);
    const isThere = (name: string) => words.includes(name) || words.includes(name.split(" ")[0] ?? "");
    expect(named.filter((name) => !isThere(name))).toEqual([]);
  });
});
