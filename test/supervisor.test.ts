import { dlopen, ptr } from "bun:ffi";
import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { socketCalls } from "../src/lib/socket-calls.ts";
import { endsWithThisProcess, tellSupervisor } from "../src/supervisor.ts";

/** As systemd does: a datagram socket in the file system. */
function listenAt(path: string) {
  const { symbols } = dlopen("libc.so.6", {
    bind: { args: ["i32", "ptr", "u32"], returns: "i32" },
    recv: { args: ["i32", "ptr", "u64", "i32"], returns: "i64" },
  });
  const calls = socketCalls();
  if (calls === null) throw new Error("There are no socket calls here");
  const descriptor = calls.socket(1, 2, 0);
  const target = Uint8Array.from([1, 0, ...Buffer.from(path), 0]);
  if (symbols.bind(descriptor, ptr(target), target.length) !== 0) throw new Error(`Cannot bind ${path}`);
  const dontWait = 0x40;
  return {
    received() {
      const text = new Uint8Array(512);
      const length = Number(symbols.recv(descriptor, ptr(text), text.length, dontWait));
      return length < 0 ? null : Buffer.from(text.subarray(0, length)).toString();
    },
    [Symbol.dispose]: () => void calls.close(descriptor),
  };
}

describe.skipIf(process.platform !== "linux")("the supervisor", () => {
  test("is told in one datagram", () => {
    const folder = mkdtempSync(join(tmpdir(), "postrider-notify-"));
    using socket = listenAt(join(folder, "notify"));
    tellSupervisor(["READY=1", "MAINPID=4711"], { NOTIFY_SOCKET: join(folder, "notify") });
    expect(socket.received()).toBe("READY=1\nMAINPID=4711");
    expect(socket.received()).toBeNull();
    rmSync(folder, { recursive: true });
  });

  test.each([{}, { NOTIFY_SOCKET: "" }, { NOTIFY_SOCKET: "/nowhere/notify" }, { NOTIFY_SOCKET: "vsock:2:3" }])(
    "that does not listen is no fault: %p",
    (env) => expect(() => tellSupervisor(["READY=1"], env)).not.toThrow(),
  );
});

describe("a successor outlives this process", () => {
  test.each([
    ["started by hand", {}, 4711, null],
    ["in a container", {}, 1, /first process of a container/],
    ["in a service that tells systemd", { SYSTEMD_EXEC_PID: "4711", NOTIFY_SOCKET: "/run/notify" }, 4711, null],
    ["in one that does not", { SYSTEMD_EXEC_PID: "4711" }, 4711, /Type=notify/],
    ["in a shell of one that does not", { SYSTEMD_EXEC_PID: "12" }, 4711, null],
  ] as const)("%s", (_, env, pid, reason) => {
    const found = endsWithThisProcess(env, pid);
    if (reason === null) expect(found).toBeNull();
    else expect(found).toMatch(reason);
  });
});
