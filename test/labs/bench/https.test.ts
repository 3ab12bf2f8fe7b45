import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { createIngestRequest, readEvent } from "./event.ts";
import { type HttpsResult, judgeHttps } from "./https-report.ts";

const good: HttpsResult = {
  seconds: 20,
  rate: 7_000,
  acceptedRate: 7_000,
  ingestionP50Ms: 1,
  ingestionP99Ms: 1,
  endToEndP50Ms: 1,
  endToEndP99Ms: 1,
  delayP50Ms: 1,
  delayP99Ms: 1,
  delayMaxMs: 1,
  serverCores: 1,
  generatorCores: 1,
  otherCores: 1,
  serverCpuSeconds: 20,
  serverUsPerEvent: 300,
  drainSeconds: 0,
  residentEndBytes: 1,
  residentPeakBytes: 1,
  accepted: 60_000,
  lost: 0,
  duplicates: 0,
  wrong: 0,
  refused: 0,
  receiverCores: 1,
  kept: 951,
  fresh: 49,
  peakBytes: 1,
};

describe("the bars of the HTTPS bench", () => {
  interface Run {
    result?: Partial<HttpsResult>;
    bareRate?: number;
    endToEndP99Ms?: number;
  }
  test.each<[string, Run, readonly boolean[]]>([
    ["are met at their edges", {}, [true, true, true, true]],
    ["ask for 7,000 deliveries a second", { result: { rate: 6_999.9 } }, [false, true, true, true]],
    [
      "ask for 0.7 of the bare relay's when that is less",
      { result: { rate: 1_400 }, bareRate: 2_000 },
      [true, true, true, true],
    ],
    ["ask for no less than that", { result: { rate: 1_399 }, bareRate: 2_000 }, [false, true, true, true]],
    ["ask for a p99 under 500 ms", { endToEndP99Ms: 500 }, [true, false, true, true]],
    ["ask for more than 95 % on kept connections", { result: { kept: 950, fresh: 50 } }, [true, true, false, true]],
    ["are not met when nothing was counted", { result: { kept: 0, fresh: 0 } }, [true, true, false, true]],
    ["allow no lost event", { result: { lost: 1 } }, [true, true, true, false]],
    ["allow no changed event", { result: { wrong: 1 } }, [true, true, true, false]],
    ["allow no refused event", { result: { refused: 1 } }, [true, true, true, false]],
  ])("%s", (_, { result, bareRate = 20_000, endToEndP99Ms = 499 }, passed) => {
    const bars = judgeHttps({ ...good, ...result }, { ...good, rate: bareRate }, { ...good, endToEndP99Ms });
    expect(bars.map((bar) => bar.passed)).toEqual([...passed]);
  });
});

describe("an event of 1,000 bytes", () => {
  test("is read as it was sent, by tenant and number", () => {
    const { bytes, stamp } = createIngestRequest(199, 1, "key", 1_000);
    stamp(7, 123, 456);
    const bodyAt = bytes.indexOf("\r\n\r\n") + 4;
    expect(bytes.length - bodyAt).toBe(1_000 + '{"payload":}'.length);
    const event = readEvent(bytes, bodyAt, bytes.length, 1_000);
    expect(event).toEqual({ run: 7, tenant: 199, seq: 123, dueUs: 456, exact: true });
  });

  test("is not exact with another byte in it, nor as one of another size", () => {
    const { bytes } = createIngestRequest(0, 1, "key", 1_000);
    expect(readEvent(bytes, 0, bytes.length, 999)?.exact).toBe(false);
    bytes[bytes.length - 10] = 0x79;
    expect(readEvent(bytes, 0, bytes.length, 1_000)?.exact).toBe(false);
  });
});

test.skipIf(process.platform !== "linux")("bench:https delivers to hosts that it verifies, on kept connections", () => {
  const command = ["https.ts", "--source", "--hosts", "3", "--seconds", "1", "--warmup", "1", "--no-gate"];
  const [file = "", ...args] = command;
  const { stdout, stderr, exitCode } = Bun.spawnSync([process.execPath, join(import.meta.dir, file), ...args]);
  expect(stderr.toString()).toBe("");
  expect(exitCode).toBe(0);
  const said = stdout.toString();
  expect(said).toContain("PASS  attempts on a kept connection");
  expect(said).toContain("0 refused, 0 lost, 0 wrong");
});
