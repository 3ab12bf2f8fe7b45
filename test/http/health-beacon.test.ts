import { afterEach, describe, expect, test } from "bun:test";
import type { DomainError } from "../../src/domain/errors.ts";
import { unavailable } from "../../src/domain/errors.ts";
import { createHealthBeacon } from "../../src/http/health-beacon.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { startTestApp } from "../support/test-app.ts";

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

async function lit(readiness: () => Promise<DomainError | null>) {
  const beacon = createHealthBeacon({ host: "127.0.0.1", port: 0, readiness, clock: systemClock });
  stops.push(() => beacon.stop());
  const url = `http://127.0.0.1:${await beacon.start()}`;
  const ask = async (path: string) => {
    const response = await fetch(`${url}${path}`);
    return [response.status, ((await response.json()) as { code?: string }).code ?? "ok"] as const;
  };
  return { beacon, url, ask };
}

describe("the probes on a port of their own", () => {
  test("answer at once while the thread of the server is blocked", async () => {
    const { url } = await lit(async () => null);
    // Another process: whatever runs on this thread is blocked, too.
    const asking = `
      const slowest = {}, statuses = {};
      const end = performance.now() + 2500;
      await fetch("${url}/healthz");
      console.log("begun");
      while (performance.now() < end) for (const path of ["healthz", "readyz"]) {
        const began = performance.now();
        const { status } = await fetch("${url}/" + path);
        slowest[path] = Math.max(slowest[path] ?? 0, performance.now() - began);
        (statuses[path] ??= []).push(status);
        await Bun.sleep(20);
      }
      console.log(JSON.stringify({ slowest, statuses }));`;
    const child = Bun.spawn([process.execPath, "-e", asking], { stdout: "pipe" });
    const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
    expect((await lines.read()).value).toBe("begun\n");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3000);
    const { slowest, statuses } = JSON.parse((await lines.read()).value ?? "");
    expect(new Set(statuses.healthz)).toEqual(new Set([200]));
    expect([statuses.readyz[0], statuses.readyz.at(-1)]).toEqual([200, 503]);
    expect(Math.max(slowest.healthz, slowest.readyz)).toBeLessThan(500);
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

  test("that cannot listen stop the start with what to do", async () => {
    const taken = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
    stops.push(() => taken.stop(true));
    const beacon = createHealthBeacon({
      ...{ host: "127.0.0.1", port: taken.port ?? 0, readiness: async () => null, clock: systemClock },
    });
    stops.push(() => beacon.stop());
    expect(beacon.start()).rejects.toThrow(/cannot listen on 127\.0\.0\.1:\d+.*Try: .*POSTRIDER_HEALTH_PORT/);
  });
});
