import { afterEach, describe, expect, test } from "bun:test";
import type { DomainError } from "../../src/domain/errors.ts";
import { unavailable } from "../../src/domain/errors.ts";
import { createHealthBeacon } from "../../src/http/health-beacon.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { startWorker } from "../../src/lib/threads.ts";
import { patienceMs } from "../support/patience.ts";
import { startTestApp } from "../support/test-app.ts";

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

async function lit(readiness: () => Promise<DomainError | null>) {
  const beacon = createHealthBeacon({
    host: "127.0.0.1",
    port: 0,
    isSuccessor: false,
    readiness,
    clock: systemClock,
    startThread: startWorker,
  });
  stops.push(() => beacon.stop());
  const url = `http://127.0.0.1:${await beacon.start()}`;
  const ask = async (path: string) => {
    const response = await fetch(`${url}${path}`);
    return [response.status, ((await response.json()) as { code?: string }).code ?? "ok"] as const;
  };
  return { beacon, url, ask };
}

describe("the probes on a port of their own", () => {
  test("answer while the thread of the server is blocked, and say that it is", async () => {
    const { url, ask } = await lit(async () => null);
    while ((await ask("/readyz"))[0] !== 200) await Bun.sleep(20);
    const asking = `
      const answers = { healthz: [], readyz: [] };
      while (answers.readyz.at(-1) !== "503 server_blocked") for (const path of ["readyz", "healthz"]) {
        const response = await fetch("${url}/" + path);
        answers[path].push(response.status + " " + ((await response.json()).code ?? "ok"));
        await Bun.sleep(20);
      }
      console.log(JSON.stringify(answers));`;
    // This thread is blocked until the other process has ended, so what it was told in all its life came from elsewhere.
    const asked = Bun.spawnSync([process.execPath, "-e", asking], { timeout: patienceMs, stderr: "inherit" });
    expect(asked.exitedDueToTimeout).toBe(false);
    const { healthz, readyz } = JSON.parse(asked.stdout.toString());
    expect(new Set(healthz)).toEqual(new Set(["200 ok"]));
    // Until the beats are missed it is as before.
    for (const before of readyz.slice(0, -1)) expect(before).toBe("200 ok");
  }, 120_000);

  test("say what the server knows of itself", async () => {
    let refusal: DomainError | null = unavailable("The disk is almost full.", "storage_full");
    const { beacon, ask } = await lit(async () => refusal);
    expect(await ask("/readyz")).toEqual([503, "storage_full"]);
    expect(await ask("/healthz")).toEqual([200, "ok"]);
    refusal = null;
    while ((await ask("/readyz"))[0] !== 200) await Bun.sleep(20);
    beacon.drain();
    expect(await ask("/readyz")).toEqual([503, "shutting_down"]);
    expect(await ask("/metrics")).toEqual([404, "unknown_path"]);
  });

  test("are there when a port is set, and no webhook may point at it", async () => {
    const app = await startTestApp({ env: { POSTRIDER_HEALTH_PORT: "0" } });
    stops.push(() => app.stop());
    const port = /"server\.probes".*"port":(\d+)/.exec(app.log.join("\n"))?.[1];
    const url = `http://127.0.0.1:${port}`;
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    while ((await fetch(`${url}/readyz`)).status !== 200) await Bun.sleep(20);
    const refused = await app.request("POST", "/v1/tenants", {
      body: { webhooks: [{ webhook_url: `${url}/readyz`, name: "" }] },
    });
    expect([refused.status, refused.body.code]).toEqual([400, "invalid_webhook_url"]);
  });

  test.each([
    ["alone", false],
    ["to share it, as the server itself does", true],
  ])(
    "that cannot listen, because another listener has the port %s, stop the start with what to do",
    async (_, shares) => {
      const taken = Bun.serve({ hostname: "127.0.0.1", port: 0, reusePort: shares, fetch: () => new Response() });
      stops.push(() => taken.stop(true));
      const beacon = createHealthBeacon({
        ...{ host: "127.0.0.1", port: taken.port ?? 0, isSuccessor: false, readiness: async () => null },
        ...{ clock: systemClock, startThread: startWorker },
      });
      stops.push(() => beacon.stop());
      await expect(beacon.start()).rejects.toThrow(
        /cannot listen on 127\.0\.0\.1:\d+ \(the port is in use\)\. Try: .*POSTRIDER_HEALTH_PORT/,
      );
    },
  );
});
