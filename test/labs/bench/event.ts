/**
 * The event that the bench sends: a payload of exactly so many bytes that says which event it is, whose, and when it was due.
 * All of it has a fixed width, so that a sender patches digits in bytes that it has built once.
 */
/** Of an event when nothing else is said. */
export const payloadBytes = 500;
export const tenantCount = 64;

const start = '{"event_type":"bench.tick","run":"';
const runWidth = 4;
export const tenantWidth = 3;
const seqWidth = 9;
const dueWidth = 13;

/** Offsets in the payload. */
const runAt = start.length;
const tenantAt = runAt + runWidth + '","tenant":"'.length;
const seqAt = tenantAt + tenantWidth + '","seq":"'.length;
const dueAt = seqAt + seqWidth + '","due_us":"'.length;
const restAt = dueAt + dueWidth;

/** Bytes that a relay may not change: escapes, a big integer, `1.0`, white space, a key twice. */
const delicate = '","exact":{"big":12345678901234567890, "one":1.0,"e":"\\u00e9\\/","twice":1,"twice":2 },"filler":"';

const startBytes = Buffer.from(start);
const rests = new Map<number, Buffer>();

/** What follows the digits in a payload of `size` bytes. */
function restOf(size: number): Buffer {
  let rest = rests.get(size);
  if (rest === undefined) {
    rest = Buffer.from(`${delicate}${"x".repeat(size - restAt - delicate.length - 2)}"}`);
    rests.set(size, rest);
  }
  return rest;
}

export const receiverPath = (tenant: number) => `/hook/${String(tenant).padStart(2, "0")}`;

/** A whole ingestion request of one tenant, of which only the digits change. */
export interface IngestRequest {
  readonly bytes: Buffer;
  /** Its events have this number and those that follow. */
  stamp(run: number, seq: number, dueUs: number): void;
}

/** @param events in one request; 0: a single one, which is no batch */
export function createIngestRequest(
  tenant: number,
  port: number,
  apiKey: string,
  size: number = payloadBytes,
  events = 0,
): IngestRequest {
  const zeros = (width: number) => "0".repeat(width);
  const event = `{"payload":${start}${zeros(runWidth)}","tenant":"${String(tenant).padStart(tenantWidth, "0")}","seq":"${zeros(seqWidth)}","due_us":"${zeros(dueWidth)}${restOf(size)}}`;
  const body = events === 0 ? event : `{"events":[${Array(events).fill(event).join()}]}`;
  const head = [
    `POST /v1/ingest${events === 0 ? "" : "/batch"} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    `Authorization: Bearer ${apiKey}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  const bytes = Buffer.from(`${head.join("\r\n")}\r\n\r\n${body}`);
  const firstPayloadAt = bytes.indexOf(startBytes);
  const eventBytes = Buffer.byteLength(event) + ",".length;
  return {
    bytes,
    stamp(run, seq, dueUs) {
      for (let i = 0; i < Math.max(events, 1); i++) {
        const payloadAt = firstPayloadAt + i * eventBytes;
        writeDigits(bytes, payloadAt + runAt, runWidth, run);
        writeDigits(bytes, payloadAt + seqAt, seqWidth, seq + i);
        writeDigits(bytes, payloadAt + dueAt, dueWidth, dueUs);
      }
    },
  };
}

/** What a delivery says about its event. */
export interface Received {
  run: number;
  tenant: number;
  seq: number;
  dueUs: number;
  /** Whether the rest of the payload is byte for byte what was sent. */
  exact: boolean;
}

const received: Received = { run: 0, tenant: 0, seq: 0, dueUs: 0, exact: false };

/**
 * Reads the event in `bytes[from, to)`, whose payload has `size` bytes; null when there is none. The result is one object,
 * valid until the next call.
 */
export function readEvent(bytes: Buffer, from: number, to: number, size: number = payloadBytes): Received | null {
  const at = bytes.indexOf(startBytes, from);
  if (at === -1 || at + size > to) return null;
  const rest = restOf(size);
  received.run = readDigits(bytes, at + runAt, runWidth);
  received.tenant = readDigits(bytes, at + tenantAt, tenantWidth);
  received.seq = readDigits(bytes, at + seqAt, seqWidth);
  received.dueUs = readDigits(bytes, at + dueAt, dueWidth);
  received.exact = bytes.compare(rest, 0, rest.length, at + restAt, at + size) === 0;
  return received;
}

function writeDigits(bytes: Buffer, at: number, width: number, value: number): void {
  let left = value;
  for (let i = at + width - 1; i >= at; i--) {
    const next = Math.floor(left / 10);
    bytes[i] = 48 + left - next * 10;
    left = next;
  }
}

function readDigits(bytes: Buffer, at: number, width: number): number {
  let value = 0;
  for (let i = at; i < at + width; i++) value = value * 10 + (bytes[i] ?? 48) - 48;
  return value;
}

/** A number of any width. */
export function readNumber(bytes: Buffer, at: number): number {
  let value = 0;
  for (let i = at, digit = bytes[i] ?? 0; digit >= 48 && digit <= 57; digit = bytes[++i] ?? 0)
    value = value * 10 + digit - 48;
  return value;
}

const origin = performance.now();
/** Microseconds since the bench started, whole. */
export const nowUs = () => Math.round((performance.now() - origin) * 1000);
