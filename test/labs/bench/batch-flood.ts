import { createIngestRequest, nowUs } from "./event.ts";
import { createLedger } from "./ledger.ts";
import type { Receiver } from "./receiver.ts";
import type { Server } from "./servers.ts";

export interface Flood {
  server: Server;
  apiKey: string;
  receiver: Receiver;
  seconds: number;
  warmupSeconds: number;
}

const batchEvents = 1_000;
const connections = 16;
/** Of the range of run numbers, one that no phase reaches. */
const run = 9_999;

/** Posts batches of 1,000 events on 16 connections as fast as they are taken. What is left of its backlog at the end does not matter here. */
export async function floodWithBatches({ server, apiKey, receiver, seconds, warmupSeconds }: Flood) {
  const ledger = createLedger(run);
  receiver.attach(ledger, () => {});
  const { bytes, stamp } = createIngestRequest(0, server.port, apiKey);
  const eventAt = bytes.indexOf("\r\n\r\n") + 4;
  const event = bytes.subarray(eventAt);
  const endUs = nowUs() + (seconds + warmupSeconds) * 1e6;
  const headers = { Authorization: `Bearer ${apiKey}`, "Content-Type": "application/json" };
  let accepted = 0;
  let acceptedInTime = 0;

  function makeBatch(): Buffer {
    const parts: Uint8Array[] = [];
    for (let n = 0; n < batchEvents; n++) {
      stamp(run, ledger.sent++, nowUs());
      parts.push(Buffer.from(n === 0 ? '{"events":[' : ","), Buffer.from(event));
    }
    return Buffer.concat([...parts, Buffer.from("]}")]);
  }

  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (nowUs() < endUs) {
        const body = makeBatch();
        const response = await fetch(`http://127.0.0.1:${server.port}/v1/ingest/batch`, {
          method: "POST",
          headers,
          body,
        });
        await response.arrayBuffer();
        if (response.status !== 202) throw new Error(`A batch was answered with ${response.status}.`);
        accepted += batchEvents;
        if (nowUs() < endUs) acceptedInTime += batchEvents;
      }
    }),
  );
  return { accepted, acceptedRate: acceptedInTime / (seconds + warmupSeconds), faults: ledger.wrong };
}
