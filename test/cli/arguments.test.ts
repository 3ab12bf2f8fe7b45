import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type CommandForm, parseArguments } from "../../src/cli/arguments.ts";
import { UsageError } from "../../src/domain/errors.ts";
import { editDistance, nearest } from "../../src/lib/nearest.ts";

const json = { name: "--json", doc: "" };
const port = { name: "--port", value: "PORT", doc: "" };
const form = (words: string, operands: string[] = [], flags: CommandForm["flags"] = []): CommandForm => ({
  words: words.split(" "),
  operands,
  flags,
});
const forms = [
  form("serve", [], [port, { name: "--data-dir", value: "DIR", doc: "" }]),
  form("demo"),
  form("tenant list", [], [json]),
  { ...form("tenant set-tier", ["ID", "TIER"], [json]), operandChoices: { TIER: ["free", "pro"] } },
  form("hook add", ["URL"]),
  { ...form("hook list", [], [json]), isDefault: true },
  form("check-url", ["URL"], [json, port]),
  form("listen", [], [json, { name: "--to", value: "URL", doc: "", isMeantBy: (word) => word.includes(":") }]),
  { ...form("help"), restName: "COMMAND" },
];

function parse(line: string) {
  const parsed = parseArguments(line.split(" ").filter(Boolean), forms);
  return { words: parsed.form.words.join(" "), operands: parsed.operands, flags: Object.fromEntries(parsed.flags) };
}

describe("parseArguments", () => {
  test.each([
    ["", "serve", [], {}],
    ["serve", "serve", [], {}],
    ["--port 80", "serve", [], { "--port": "80" }],
    ["--port=80", "serve", [], { "--port": "80" }],
    ["serve --port 80 --data-dir x", "serve", [], { "--port": "80", "--data-dir": "x" }],
    ["serve --data-dir=--x", "serve", [], { "--data-dir": "--x" }],
    ["serve --data-dir=a=b", "serve", [], { "--data-dir": "a=b" }],
    ["serve --data-dir=", "serve", [], { "--data-dir": "" }],
    ["serve --port -1", "serve", [], { "--port": "-1" }],
    ["tenant list --json", "tenant list", [], { "--json": "" }],
    ["tenant set-tier t1 pro", "tenant set-tier", ["t1", "pro"], {}],
    ["tenant set-tier t1 --json pro", "tenant set-tier", ["t1", "pro"], { "--json": "" }],
    ["hook", "hook list", [], {}],
    ["hook --json", "hook list", [], { "--json": "" }],
    ["hook list --json", "hook list", [], { "--json": "" }],
    ["hook add list", "hook add", ["list"], {}],
    ["check-url -- --json", "check-url", ["--json"], {}],
    ["check-url -", "check-url", ["-"], {}],
    ["help", "help", [], {}],
    ["help tenant list", "help", ["tenant", "list"], {}],
  ])("%p is %s", (line, words, operands, flags) => {
    expect(parse(line)).toEqual({ words, operands, flags });
  });

  test.each([
    ["serv", 'There is no command "serv". Try: postrider serve'],
    ["dmeo", 'There is no command "dmeo". Try: postrider demo'],
    ["xyzzy-foo", 'There is no command "xyzzy-foo". Try: postrider help'],
    ["tenat lits", 'There is no command "tenat". Try: postrider tenant list'],
    ["tenant", '"postrider tenant" needs one of list, set-tier. Try: postrider tenant list'],
    ["tenant --json", '"postrider tenant" needs one of list, set-tier. Try: postrider tenant list'],
    ["tenant lst", 'There is no command "tenant lst". Try: postrider tenant list'],
    ["tenant settier", 'There is no command "tenant settier". Try: postrider tenant set-tier ID free|pro'],
    ["tenant explode", 'There is no command "tenant explode". Try: postrider help tenant'],
    ["hook lst", 'There is no command "hook lst". Try: postrider hook list'],
    ["hook --jsn", '"postrider hook list" has no flag --jsn. Try: --json'],
    ["tenant set-tier", '"postrider tenant set-tier" needs ID. Try: postrider tenant set-tier ID free|pro'],
    ["tenant set-tier t1", '"postrider tenant set-tier" needs TIER. Try: postrider tenant set-tier ID free|pro'],
    ["demo now", 'Unexpected argument "now" for "postrider demo". Try: postrider demo'],
    ["listen host:80", 'Unexpected argument "host:80" for "postrider listen". Try: postrider listen --to host:80'],
    ["listen h:8?a", 'Unexpected argument "h:8?a" for "postrider listen". Try: postrider listen --to \'h:8?a\''],
    ["listen now", 'Unexpected argument "now" for "postrider listen". Try: postrider listen'],
    ["listen h:1 --to h:2", 'Unexpected argument "h:1" for "postrider listen". Try: postrider listen'],
    [
      "tenant set-tier t1 pro now",
      'Unexpected argument "now" for "postrider tenant set-tier". Try: postrider tenant set-tier ID free|pro',
    ],
    ["--prot 80", '"postrider serve" has no flag --prot. Try: --port PORT'],
    ["serve --verbose", '"postrider serve" has no flag --verbose. Try: postrider help serve'],
    ["serve -port 80", '"postrider serve" has no flag -port. Try: --port PORT'],
    ["serve -p 80", '"postrider serve" has no flag -p. Try: postrider help serve'],
    ["serve --port", "--port needs a value. Try: --port PORT"],
    ["serve --port --data-dir x", "--port needs a value. Try: --port PORT"],
    ["serve --port 1 --port 2", "--port is given twice. Try: --port PORT once"],
    ["tenant list --json=yes", "--json takes no value. Try: --json"],
  ])("%p is refused with the nearest valid form", (line, message) => {
    expect(() => parse(line)).toThrow(new UsageError(message));
  });

  test("whatever is typed is either understood or refused in one line", () => {
    const word = fc.oneof(fc.constantFrom("tenant", "list", "serve", "--port", "--json", "--", "-", "="), fc.string());
    fc.assert(
      fc.property(fc.array(word, { maxLength: 6 }), (argv) => {
        try {
          parseArguments(argv, forms);
        } catch (error) {
          expect(error).toBeInstanceOf(UsageError);
          expect((error as Error).message).toContain("Try: ");
        }
      }),
    );
  });
});

describe("nearest", () => {
  test.each([
    ["serv", "serve"],
    ["vresion", "version"],
    ["tennant", "tenant"],
    ["srve", "serve"],
    ["sev", "serve"],
    ["seven", null],
    ["check", null],
    ["", null],
    ["banana", null],
  ])("%p means %p", (given, meant) => {
    expect(nearest(given, ["serve", "version", "tenant", "check-url"])).toBe(meant);
  });

  test.each([
    ["", "", 0],
    ["abc", "abc", 0],
    ["abc", "", 3],
    ["ab", "ba", 1],
    ["kitten", "sitting", 3],
  ])("the distance of %p and %p is %i", (from, to, distance) => {
    expect(editDistance(from, to)).toBe(distance);
    expect(editDistance(to, from)).toBe(distance);
  });
});
