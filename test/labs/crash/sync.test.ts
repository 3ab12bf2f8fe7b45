import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApi, openAccount } from "../../../src/cli/selftest/rig/account.ts";
import { connect } from "../../../src/cli/selftest/rig/connection.ts";
import { statusIn } from "../../../src/cli/selftest/rig/http-message.ts";
import { writeIngestRequest } from "../../../src/cli/selftest/rig/traffic.ts";
import { operatorTokenFile } from "../../../src/secrets.ts";
import { readServerFile } from "../../../src/server-file.ts";
import { startReceiver } from "../../support/receiver.ts";
import { program } from "./program.ts";
import { judgeTrace, readTrace } from "./trace.ts";

const marker = /mark-\d{4}/;
const clients = 8;
const requestsEach = 10;

const folder = mkdtempSync(join(tmpdir(), "postrider-sync-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const canTrace = Bun.which("strace") !== null && Bun.spawnSync(["strace", "-o", "/dev/null", "true"]).exitCode === 0;

/** The server under strace; resolves with its address. */
async function startTraced(traceFile: string, dataDir: string) {
  const calls = "trace=recvfrom,recvmsg,sendto,sendmsg,write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,rename";
  const strace = ["strace", "-f", "-y", "-s", "4200", "-e", calls, "-o", traceFile];
  const child = Bun.spawn([...strace, ...program, "serve"], {
    env: {
      PATH: process.env.PATH ?? "",
      POSTRIDER_DATA_DIR: dataDir,
      POSTRIDER_PORT: "0",
      POSTRIDER_MIN_FREE_DISK: "0",
      POSTRIDER_LOG_FORMAT: "json",
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  let said = "";
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    said += text;
    const url = /"server\.started","url":"([^"]+)"/.exec(said)?.[1];
    if (url !== undefined) return { child, port: Number(new URL(url).port) };
  }
  throw new Error(`The server did not start: ${said}`);
}

test.skipIf(!canTrace)(
  "no 202 before the sync of its event, by the system calls of the server (needs strace, and leave to trace)",
  async () => {
    const traceFile = join(folder, "trace");
    const dataDir = join(folder, "data");
    const { child, port } = await startTraced(traceFile, dataDir);
    const receiver = startReceiver();
    const api = createApi(`http://127.0.0.1:${port}`);
    const operatorToken = readFileSync(join(dataDir, operatorTokenFile), "utf8").trim();
    const hooks = [{ path: "/hook", manner: "steady" }] as const;
    const account = await openAccount(api, { hooks, receiverUrl: receiver.url, operatorToken });

    // Several at once, so that commits are shared, with deliveries between them.
    const send = async (client: number) => {
      const connection = await connect(port);
      const statuses: number[] = [];
      for (let n = 0; n < requestsEach; n++) {
        const mark = `mark-${String(client * requestsEach + n).padStart(4, "0")}`;
        const request = writeIngestRequest(account, [Buffer.from(`{"m":"${mark}"}`)], false, null);
        const answer = await connection?.send(request);
        statuses.push(answer ? statusIn(answer) : 0);
      }
      connection?.close();
      return statuses;
    };
    const statuses = await Promise.all(Array.from({ length: clients }, (_, client) => send(client)));
    expect(new Set(statuses.flat())).toEqual(new Set([202]));
    await receiver.waitFor(clients * requestsEach);
    process.kill(readServerFile(dataDir)?.pid ?? 0, "SIGTERM");
    await child.exited;
    await receiver.stop();

    const calls = readTrace(readFileSync(traceFile, "utf8"));
    expect(judgeTrace(calls, marker)).toEqual({ answers: clients * requestsEach, faults: [] });
    // What stored events are encrypted with is as durable as they are.
    const firstAnswer = calls.find(({ rest }) => rest.includes('"HTTP/1.1 202 '))?.beganAt ?? 0;
    for (const secret of ["master-key", "session-secret", "operator-token"]) {
      const synced = calls.find(({ name, target }) => name === "fsync" && target.endsWith(`${secret}.new`));
      expect({ secret, inTime: (synced?.endedAt ?? firstAnswer) < firstAnswer }).toEqual({ secret, inTime: true });
    }
  },
  120_000,
);

describe("a trace", () => {
  const receive = `7 recvfrom(9<socket:[1]>, "POST /v1/ingest HTTP/1.1\\r\\n {\\"m\\":\\"mark-0001\\"}", 500, 0, NULL, NULL) = 80`;
  const write = '7 pwrite64(5</d/postrider.db-wal>, "mark-0001", 4096, 32) = 4096';
  const commit = '7 pwrite64(5</d/postrider.db-wal>, "\\0\\0", 4096, 4152) = 4096';
  const sync = "7 fdatasync(5</d/postrider.db-wal>) = 0";
  const answer = '7 sendto(9<socket:[1]>, "HTTP/1.1 202 Accepted\\r\\n", 200, 0, NULL, 0) = 200';
  const other = '8 pwrite64(4</d/postrider.db>, "mark-0001", 4096, 0) = 4096';
  const unwritten = "mark-0001 was acknowledged before it was written into the log";
  const unsynced = "mark-0001 was acknowledged before the log was synced";

  test.each([
    ["written, synced, answered", [receive, write, commit, sync, other, answer], []],
    ["never synced", [receive, write, commit, answer], [unsynced]],
    ["synced before the last write", [receive, write, sync, commit, answer], [unsynced]],
    ["synced after the answer", [receive, write, commit, answer, sync], [unsynced]],
    ["a sync that failed", [receive, write, commit, sync.replace("= 0", "= -1 EIO"), answer], [unsynced]],
    ["a sync of another file", [receive, write, sync.replace("-wal", ""), answer], [unsynced]],
    ["answered before anything was written", [receive, answer, write, sync], [unwritten, unsynced]],
    ["written before it was asked for", [write, sync, receive, commit, sync, answer], [unwritten]],
    [
      "a sync that has not returned",
      [
        receive,
        write,
        "7 fdatasync(5</d/postrider.db-wal> <unfinished ...>",
        answer.replace("7", "8"),
        "7 <... fdatasync resumed>) = 0",
      ],
      [unsynced],
    ],
    [
      "a sync that has returned meanwhile",
      [
        receive,
        write,
        "7 fdatasync(5</d/postrider.db-wal> <unfinished ...>",
        other,
        "7 <... fdatasync resumed>) = 0",
        answer,
      ],
      [],
    ],
  ])("%s", (_name, lines, faults) => {
    expect(judgeTrace(readTrace(lines.join("\n")), marker)).toEqual({ answers: 1, faults });
  });
});
