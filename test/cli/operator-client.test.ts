import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../../src/cli/run.ts";
import { type DataDir, openDataDir } from "../../src/data-dir.ts";
import { networkNamespace } from "../../src/lib/network-namespace.ts";
import { operatorTokenFile } from "../../src/secrets.ts";
import { openStore } from "../../src/store/open.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createScriptedIo } from "../support/scripted-io.ts";

/** Somebody who listens where a server did, and what they were sent. */
function listenInItsPlace() {
  const tokens: (string | null)[] = [];
  const listener = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      tokens.push(request.headers.get("authorization"));
      return Response.json({});
    },
  });
  return { url: `http://127.0.0.1:${listener.port}`, tokens, [Symbol.asyncDispose]: () => listener.stop(true) };
}

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postrider-operator-client-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const serverFile = () => join(folder, "server.json");
const readToken = () => readFileSync(join(folder, operatorTokenFile), "utf8");

/** As `kill -9` leaves it; in a container, its process id is the command's own. */
function leaveServerFile(url: string) {
  writeFileSync(serverFile(), JSON.stringify({ pid: process.pid, url, network: networkNamespace() }), { mode: 0o600 });
}

/** A server that holds the folder and listens in the network given. */
function holdFrom(network: string | null | undefined, url: string): DataDir {
  const held = openDataDir(folder);
  writeFileSync(serverFile(), JSON.stringify({ pid: process.pid, url, network }), { mode: 0o600 });
  return held;
}

async function run(...words: string[]) {
  const { io, out, err } = createScriptedIo({ env: { POSTRIDER_DATA_DIR: folder, POSTRIDER_PORT: "0" } });
  const code = await runCommand(words, io);
  return { code, out: out.join("\n"), err: err.join("\n") };
}

describe("whoever listens where a server did that was killed", () => {
  test.each([["tenant list"], ["resume"], ["nodes"], ["audit"], ["restart"], ["healthcheck"]])(
    "is not asked by %s",
    async (line) => {
      openDataDir(folder).release();
      await using other = listenInItsPlace();
      leaveServerFile(other.url);
      const { code, err } = await run(...line.split(" "));
      expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining("No server is running on the data") });
      expect(other.tokens).toEqual([]);
    },
  );

  test.each([["operator rotate-token"], ["rotate-key"]])("is not asked by %s, which works alone", async (line) => {
    openDataDir(folder).release();
    const { store } = await openStore({ dataDir: folder, clock: createFakeClock() });
    await store.close();
    const before = readToken();
    await using other = listenInItsPlace();
    leaveServerFile(other.url);
    expect(await run(...line.split(" "))).toMatchObject({ code: 0, err: "" });
    expect(readToken() === before).toBe(line === "rotate-key");
    // Somebody who holds the folder next must not be taken for the one that was killed.
    expect(existsSync(serverFile())).toBe(false);
    expect(other.tokens).toEqual([]);
  });
});

describe("a server that holds the folder", () => {
  test("notes its network", () => {
    const held = openDataDir(folder);
    held.announce({ pid: 1, url: "http://127.0.0.1:1" }, () => {});
    expect(JSON.parse(readFileSync(serverFile(), "utf8"))).toEqual({
      pid: 1,
      url: "http://127.0.0.1:1",
      network: process.platform === "linux" ? expect.stringMatching(/^net:\[\d+\]$/) : null,
    });
    held.release();
  });

  test.each([["tenant list"], ["operator rotate-token"], ["rotate-key"], ["healthcheck"]])(
    "in another network is not asked by %s, which says where to run it",
    async (line) => {
      await using other = listenInItsPlace();
      const held = holdFrom("net:[1]", other.url);
      const before = readToken();
      const { code, err } = await run(...line.split(" "));
      expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(/another network .* Try: run the command/) });
      expect([other.tokens, readToken()]).toEqual([[], before]);
      held.release();
    },
  );

  test.each([
    ["this network", networkNamespace()],
    ["one that it has not noted", undefined],
  ])("in %s is sent the token", async (_, network) => {
    await using itself = listenInItsPlace();
    const held = holdFrom(network, itself.url);
    await run("mail", "test", "operator@example.com");
    expect(itself.tokens).toEqual([`Bearer ${readToken().trim()}`]);
    held.release();
  });
});
