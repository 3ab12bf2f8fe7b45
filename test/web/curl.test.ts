import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import nacl from "tweetnacl";
import { buildRequest } from "../../src/delivery/request.ts";
import { generateSecret, generateSigningKey, importPrivateKey, secretBytes } from "../../src/delivery/signature.ts";
import { encodeEventId } from "../../src/lib/id.ts";
import { asCurl, type CurlRequest } from "../../web/curl.ts";
import { type Hooks, startHooks } from "../support/api-server.ts";

/** Every command is really run: what arrives is what counts, not how it is written. */

const bytes = (text: string) => new TextEncoder().encode(text);
const url = "https://shop.example/hook";
const json = { "Content-Type": "application/json" };

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "postrider-curl-"));
  // Writes down what it was called with; found before the real one.
  const stub = `#!/bin/sh\nprintf '%s\\0' "$@" > "${folder}/arguments"\ncat > "${folder}/input"\n`;
  writeFileSync(join(folder, "curl"), stub);
  chmodSync(join(folder, "curl"), 0o755);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a command as a script of its own: on a command line it would be limited in length. */
async function run(shell: string, command: string, path = process.env.PATH ?? ""): Promise<void> {
  const script = join(folder, "command.sh");
  writeFileSync(script, command);
  const child = Bun.spawn([shell, script], {
    cwd: folder,
    env: { ...process.env, PATH: path },
    stdin: "ignore",
    stderr: "pipe",
    stdout: "pipe",
  });
  const said = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(`The command failed: ${said}`);
}

/** What curl is called with: its arguments as bytes, and the body wherever it comes from. */
async function calledWith(shell: string, request: CurlRequest): Promise<{ arguments: string[]; body: Buffer }> {
  await run(shell, asCurl(request), `${folder}:${process.env.PATH}`);
  const given = readFileSync(join(folder, "arguments"), "latin1").split("\0").slice(0, -1);
  const [option, data = ""] = given.slice(-2);
  const isPiped = option === "--data-binary" && data === "@-";
  const body = isPiped ? readFileSync(join(folder, "input")) : Buffer.from(data, "latin1");
  return { arguments: given, body };
}

// Whoever does not have a shell skips it, by name; `sh` is everywhere.
const shells = ["sh", "bash", "dash", "zsh"];
const isMissing = (program: string) => Bun.which(program) === null;

const bodies: Record<string, string | Uint8Array> = {
  "a delivery": '{"eventId":"evt_1","payload":{"n":12345678901234567890,"one":1.0}}',
  nothing: "",
  "single quotes": `{"it's":"'quoted' '' '\\''"}`,
  "double quotes, backticks and dollars": '{"a":"$(touch x) `id` $HOME $1 \\" \\\\"}',
  "marks of history, globs and comments": '{"a":"!! !x * ? [a-z] ~ # & ; | > < ( )"}',
  backslashes: '{"a":"\\n \\\\n \\u00e9 \\0 \\101 \\',
  percent: '{"a":"100% %s %n %%"}',
  "line breaks": '{\n  "a": 1\n}\n\n',
  "a line break alone": "\n",
  "carriage returns": '{\r\n"a":1}\r\n',
  tabs: '{\t"a":\t1}',
  "other letters": '{"a":"é 日本 🚀 \u2028"}',
  "a byte order mark": "\ufeff{}",
  "a name of a file": "@/etc/hostname",
  "standard input": "@-",
  "an option": "--version",
  "an option with control characters": "-n\u0007",
  "control characters": String.fromCharCode(...Array.from({ length: 32 }, (_, n) => n), 127),
  "a NUL before digits": "\u00001234",
  "bytes that are no text": Uint8Array.from([0x7b, 0xff, 0xfe, 0x80, 0x27, 0x25, 0x5c, 0x30, 0x00, 0x7d]),
  "every byte": Uint8Array.from({ length: 256 }, (_, n) => n),
  "bytes that are text": bytes(`{"it's":"text"}`),
  "bytes that are text, with a byte order mark": bytes("\ufeff{}"),
  "256 KiB": `{"a":"${"it's 100% ".repeat(26_000)}"}`,
  "256 KiB of three-byte letters": `{"a":"${"日".repeat(87_000)}"}`,
};

test.skip.each(shells.filter(isMissing))("the command runs in %s", () => {});

describe.each(shells.filter((shell) => !isMissing(shell)))("in %s", (shell) => {
  test.each(Object.entries(bodies))("the body arrives byte for byte: %s", async (_, body) => {
    const { body: arrived } = await calledWith(shell, { url, headers: json, body });
    expect(arrived.equals(Buffer.from(body))).toBe(true);
  });

  const values = [
    "it's",
    '"',
    "$(id) `id` $HOME",
    "a\\",
    "100%",
    "a\r\nb: c",
    "é 日本",
    "\t",
    "-x",
    "@file",
    "'",
    "''",
  ];
  test.each(values)("the header %j arrives byte for byte", async (value) => {
    const { arguments: given } = await calledWith(shell, { url, headers: { ...json, "X-Test": value }, body: "{}" });
    expect(given.map((argument) => Buffer.from(argument, "latin1").toString())).toEqual([
      url,
      "-H",
      "Content-Type: application/json",
      "-H",
      `X-Test: ${value}`,
      "--data-binary",
      "{}",
    ]);
  });

  test("nothing of it is run", async () => {
    const trap = "'; touch run; '$(touch run)`touch run`\n touch run\n";
    await calledWith(shell, { url: `https://a.example/${trap}`, headers: { [trap]: trap }, body: trap });
    expect(await Bun.file(join(folder, "run")).exists()).toBe(false);
  });
});

describe("the command", () => {
  test("reads as one, a line for each header", () => {
    const headers = { ...json, "Service-Event-Id": "evt_1" };
    expect(asCurl({ url, headers, body: '{"it\'s":1}' })).toBe(
      [
        "curl 'https://shop.example/hook' \\",
        "  -H 'Content-Type: application/json' \\",
        "  -H 'Service-Event-Id: evt_1' \\",
        "  --data-binary '{\"it'\\''s\":1}'",
      ].join("\n"),
    );
  });

  test("is piped only where it has to be", () => {
    const piped = Object.entries(bodies).filter(([, body]) => asCurl({ url, headers: {}, body }).startsWith("printf"));
    expect(piped.map(([name]) => name)).toEqual([
      "carriage returns",
      "tabs",
      "an option with control characters",
      "control characters",
      "a NUL before digits",
      "bytes that are no text",
      "every byte",
      "256 KiB",
      "256 KiB of three-byte letters",
    ]);
  });
});

describe("through the real curl", () => {
  let hooks: Hooks;
  beforeAll(async () => {
    hooks = await startHooks();
  });
  afterAll(() => hooks.stop());

  test.skipIf(isMissing("curl"))("a delivery arrives as it was signed", async () => {
    const { publicKey, privateSeed } = generateSigningKey();
    const payload = bytes(`{ "it's" : "100% $HOME", "n":12345678901234567890, "one":1.0, "tab":\t1 }`);
    const hook = hooks.hook();
    const eventSeq = Date.UTC(2026, 0, 15) * 2048;
    const eventId = encodeEventId(eventSeq, new Uint8Array([0x80, 1, 2, 3, 4, 5, 6, 7]));
    const delivery = {
      ...{ deliveryKey: 1, tenantKey: 1, tenantId: "t1", webhookKey: 1, url: hook.url, eventSeq, eventId, payload },
      ...{ trace: null, run: 1, attemptsInRun: 0, attempts: 0, replayKey: null, replayGroupId: "März 100%" },
    };
    const material = {
      keyId: "sk_1",
      privateKey: importPrivateKey(privateSeed),
      secrets: [secretBytes(generateSecret())],
    };
    const { url, headers, body } = buildRequest(delivery, material, Date.UTC(2026, 0, 15));
    await run("sh", asCurl({ url, headers, body: body.toString() }));
    const [received] = await hook.whenReceived(1);
    if (!received) throw new Error("it was received");
    expect(received.body.equals(body)).toBe(true);
    const sent = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
    expect(received.headers).toMatchObject(sent);
    const signature = Buffer.from(String(received.headers["service-signature"]), "base64");
    expect(nacl.sign.detached.verify(received.body, signature, new Uint8Array(publicKey))).toBe(true);
  });

  test.skipIf(isMissing("curl"))("an empty header and no type arrive as they are", async () => {
    const hook = hooks.hook();
    const body = "x".repeat(150_000);
    await run("sh", asCurl({ url: hook.url, headers: { "X-Empty": "" }, body }));
    const [received] = await hook.whenReceived(1);
    expect(received?.headers["x-empty"]).toBe("");
    expect(received?.headers["content-type"]).toBeUndefined();
    expect([received?.method, received?.text]).toEqual(["POST", body]);
  });

  test.skipIf(isMissing("curl"))("an address with brackets and braces is one address", async () => {
    const asked: string[] = [];
    const receiver = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch(request) {
        asked.push(new URL(request.url).search);
        return new Response();
      },
    });
    await run("sh", asCurl({ url: `http://127.0.0.1:${receiver.port}/?a[]={1,2}&b=[1-2]`, headers: json, body: "{}" }));
    await receiver.stop(true);
    expect(asked).toEqual(["?a[]={1,2}&b=[1-2]"]);
  });
});
