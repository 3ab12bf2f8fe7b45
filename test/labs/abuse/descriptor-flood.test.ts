import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../../support/api-server.ts";

const limit = 256;
const folder = mkdtempSync(join(tmpdir(), "postrider-descriptors-"));
const sockets: Socket[] = [];
let server: Bun.Subprocess<"ignore", "pipe", "inherit"> | undefined;

afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  server?.kill();
  await server?.exited;
  rmSync(folder, { recursive: true, force: true });
});

/** Only Linux lets a program be started with a limit by another, and tells which connections do nothing. */
const hasLimits = process.platform === "linux" && Bun.which("prlimit") !== null;

test.skipIf(!hasLimits)(
  "more connections than descriptors: those that do nothing go, the server stays reachable and says so",
  async () => {
    const program = [process.execPath, join(import.meta.dir, "../../../src/main.ts"), "serve"];
    server = Bun.spawn(["prlimit", `--nofile=${limit}:${limit}`, ...program], {
      env: { POSTRIDER_PORT: "0", POSTRIDER_DATA_DIR: folder, POSTRIDER_LOG_FORMAT: "json" },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
    });
    let log = "";
    const { stdout } = server;
    void (async () => {
      for await (const text of stdout.pipeThrough(new TextDecoderStream())) log += text;
    })();
    await until(
      () => log,
      (text) => text.includes("server.started"),
    );
    const port = Number(/"url":"http:\/\/localhost:(\d+)"/.exec(log)?.[1]);

    for (let i = 0; i < limit + 150; i++) {
      const socket = connect(port, "127.0.0.1", () => socket.write("GET /healthz HT"));
      socket.on("error", () => {});
      sockets.push(socket);
    }
    await until(
      () => log,
      (text) => text.includes("descriptors.short"),
    );
    const [line = ""] = log.split("\n").filter((text) => text.includes("descriptors.short"));
    expect(JSON.parse(line)).toMatchObject({ level: "warn", limit, open: expect.any(Number) });

    const answer = await fetch(`http://127.0.0.1:${port}/metrics`, { keepalive: false });
    expect(answer.status).toBe(200);
    const [, open = ""] = /^process_open_fds (\d+)$/m.exec(await answer.text()) ?? [];
    expect(Number(open)).toBeLessThan(limit);
    expect(log.split("descriptors.short")).toHaveLength(2);
  },
  120_000,
);
