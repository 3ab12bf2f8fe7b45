import type { DueDelivery } from "../domain/delivery.ts";
import type { Clock } from "../lib/clock.ts";
import type { Interruption } from "../lib/interruption.ts";
import type { Log } from "../lib/log.ts";
import { Slots } from "../lib/slots.ts";
import { faultOf, type StartThread, startWorker, type Thread } from "../lib/threads.ts";
import type { Listener } from "./network/own-listeners.ts";
import type { BodyRead, Outcome } from "./network/transport.ts";
import type { Sender, SendOrder } from "./sender.ts";
import type {
  PackedAnswer,
  PackedBytes,
  PackedOrder,
  PackedSigner,
  SenderMessage,
  SenderNews,
  SenderSettings,
} from "./sender-messages.ts";
import type { SignerMaterial } from "./signature.ts";

/** As many as `signers.ts` keeps; about 1 KB each on the other side. */
const maxKnownSigners = 10_000;

export interface SenderThreadDeps {
  /** Read when the thread starts, which is at the first attempt, or at `start`. */
  settings(): SenderSettings;
  clock: Clock;
  log: Log;
  /** Told for each request whether it went out on a kept connection. */
  onConnection(reused: boolean): void;
  /**
   * Called for each answered attempt with the time it took apart from its receiver's: on the way there, in the thread's
   * queues, and back.
   */
  onOwnTime(delivery: DueDelivery, ownMs: number): void;
  /** @default startWorker */
  startThread?: StartThread;
}

export interface SenderThread extends Sender {
  /** Starts the thread now, so that the first attempt need not wait for that. */
  start(): void;
  /** See `AddressPolicy`. A thread that starts later goes by its settings. */
  avoid(ownListeners: readonly Listener[]): void;
}

/**
 * A sender on its own thread. Two signatures, TLS and HTTP are most of what an attempt costs, and none of that needs the
 * database: here it runs in parallel with the event loop that accepts and records, which is what limits the rate.
 *
 * What is ordered in one turn of the event loop goes over in one message, and answers come back the same way.
 */
export function createSenderThread({
  settings,
  clock,
  log,
  onConnection,
  onOwnTime,
  startThread = startWorker,
}: SenderThreadDeps): SenderThread {
  let worker: Thread | null = null;
  let closed = false;
  const underWay = new Slots<Attempt>();
  let outbox: { id: number; order: SendOrder }[] = [];
  const numbers = new Map<SignerMaterial, number>();
  let lastNumber = 0;

  const tell = (message: SenderMessage, transfer: ArrayBuffer[] = []) => worker?.postMessage(message, transfer);

  function start(): void {
    if (worker) return;
    const started = startThread(new URL("./sender-worker.ts", import.meta.url));
    started.onmessage = ({ data }: MessageEvent<string>) => hear(JSON.parse(data));
    started.onerror = (event) => {
      if (worker === started) recover(faultOf(event));
    };
    // The server's listener keeps the process alive, not this.
    started.unref();
    worker = started;
    tell({ kind: "open", settings: settings() });
  }

  /** A bug of ours ended the thread. Its attempts may or may not have arrived, so they are made again, on a new one. */
  function recover(message: string): void {
    log.write("error", "sender.failed", { message });
    worker = null;
    numbers.clear();
    for (const attempt of underWay.takeAll()) attempt.breakOff("connection_reset", "this server aborted the attempt");
  }

  function flush(): void {
    const orders = outbox.filter(({ id }) => underWay.get(id) !== undefined);
    outbox = [];
    if (orders.length === 0 || closed) return;
    start();
    const payloads = new Uint8Array(orders.reduce((sum, { order }) => sum + order.delivery.payload.length, 0));
    const signers: PackedSigner[] = [];
    const forgotten: number[] = [];
    let payloadEnd = 0;
    const packed = orders.map(({ id, order: { delivery, material, headers, now } }): PackedOrder => {
      const { url, eventId, tenantId, eventSeq, trace, replayGroupId, payload } = delivery;
      payloads.set(payload, payloadEnd);
      payloadEnd += payload.length;
      const signer = numbers.get(material) ?? introduce(material, signers, forgotten);
      return {
        id,
        url,
        eventId,
        tenantId,
        eventSeq,
        trace: trace ?? undefined,
        replayGroupId: replayGroupId ?? undefined,
        headers: headers.length > 0 ? headers : undefined,
        payloadEnd,
        signer,
        now,
      };
    });
    if (signers.length > 0) tell({ kind: "signers", signers });
    tell({ kind: "send", orders: JSON.stringify(packed), payloads: payloads.buffer }, [payloads.buffer]);
    if (forgotten.length > 0) tell({ kind: "forget", signers: forgotten });
  }

  function introduce(material: SignerMaterial, signers: PackedSigner[], forgotten: number[]): number {
    if (numbers.size >= maxKnownSigners) {
      const [oldest] = numbers;
      if (oldest) {
        numbers.delete(oldest[0]);
        forgotten.push(oldest[1]);
      }
    }
    lastNumber += 1;
    const { keyId, privateKey, secrets } = material;
    const der = privateKey.export({ format: "der", type: "pkcs8" });
    signers.push({ number: lastNumber, keyId, privateKey: new Uint8Array(der), secrets: secrets.map(copyOf) });
    numbers.set(material, lastNumber);
    return lastNumber;
  }

  function hear({ answers, bodies, connections, busyMs }: SenderNews): void {
    for (let i = 0; i < connections.fresh; i++) onConnection(false);
    for (let i = 0; i < connections.kept; i++) onConnection(true);
    for (const answer of answers) {
      const attempt = underWay.get(answer.id);
      // An attempt that was broken off on this side already has its answer.
      if (!attempt) continue;
      if (answer.kind !== "responded" || answer.bodyEnded) underWay.delete(answer.id);
      if (answer.kind === "responded") {
        // While the thread was busy, the answer may have been waiting for all of that time.
        onOwnTime(attempt.delivery, attempt.elapsedMs() - Math.max(answer.durationMs - busyMs, 0));
      }
      attempt.answer(answer);
    }
    for (const { id, body } of bodies) {
      underWay.get(id)?.endBody(unpack(body));
      underWay.delete(id);
    }
  }

  function breakOff(attempt: Attempt): void {
    underWay.delete(attempt.id);
    tell({ kind: "abort", id: attempt.id });
    attempt.breakOff("interrupted");
  }

  return {
    start() {
      if (!closed) start();
    },

    send(order, signal) {
      return new Promise((resolve, reject) => {
        const attempt = new Attempt(order.delivery, resolve, reject, signal, clock, breakOff);
        if (closed || signal?.aborted) return attempt.breakOff("interrupted");
        signal?.addEventListener("abort", attempt);
        attempt.id = underWay.add(attempt);
        outbox.push({ id: attempt.id, order });
        if (outbox.length === 1) setImmediate(flush);
      });
    },

    avoid: (ownListeners) => tell({ kind: "avoid", ownListeners }),

    close() {
      closed = true;
      tell({ kind: "close" });
      worker = null;
      for (const attempt of underWay.takeAll()) attempt.breakOff("interrupted");
    },
  };
}

/** Posting a small view into a pool would copy the whole pool. */
const copyOf = (bytes: Uint8Array) => new Uint8Array(bytes);

/** One attempt as this side knows it. The abort listener is the object itself. */
class Attempt {
  id = 0;
  private readonly startedAtMs: number;
  private body: LateBody | undefined;

  constructor(
    readonly delivery: DueDelivery,
    private readonly resolve: (outcome: Outcome) => void,
    private readonly reject: (error: Error) => void,
    private readonly signal: Interruption | undefined,
    private readonly clock: Pick<Clock, "monotonicMs">,
    private readonly onAbort: (attempt: Attempt) => void,
  ) {
    this.startedAtMs = clock.monotonicMs();
  }

  elapsedMs(): number {
    return this.clock.monotonicMs() - this.startedAtMs;
  }

  handleEvent(): void {
    this.onAbort(this);
  }

  answer(answer: PackedAnswer): void {
    if (answer.kind === "responded" && !answer.bodyEnded) this.body = new LateBody(unpack(answer.body));
    else this.release();
    if (answer.kind === "failed") this.reject(new Error(answer.message));
    else if (answer.kind === "responded") {
      const { status, retryAfter, head, durationMs } = answer;
      const body = this.body ?? wholeBody(unpack(answer.body));
      this.resolve({ kind: "responded", status, retryAfter, head, durationMs, body });
    } else {
      const { cause, detail, durationMs } = answer;
      this.resolve({ kind: "no-response", cause, ...(detail !== undefined && { detail }), durationMs });
    }
  }

  endBody(body: Uint8Array): void {
    this.release();
    this.body?.end(body);
  }

  /** Ends it without the other side: there is no answer, or no more of its body. */
  breakOff(cause: "interrupted" | "connection_reset", detail?: string): void {
    this.release();
    if (this.body) this.body.end(this.body.received());
    else this.resolve({ kind: "no-response", cause, ...(detail && { detail }), durationMs: this.elapsedMs() });
  }

  private release(): void {
    this.signal?.removeEventListener("abort", this);
  }
}

/** The body of an answer that was still arriving: what came with the head, until the rest is known. */
class LateBody implements BodyRead {
  ended = false;
  readonly done: Promise<void>;
  private resolve = () => {};

  constructor(private bytes: Uint8Array) {
    this.done = new Promise((resolve) => (this.resolve = resolve));
  }

  received(): Uint8Array {
    return this.bytes;
  }

  end(bytes: Uint8Array): void {
    this.bytes = bytes;
    this.ended = true;
    this.resolve();
  }
}

const nothing = new Uint8Array(0);
const unpack = (bytes: PackedBytes) => (bytes === "" ? nothing : Buffer.from(bytes, "latin1"));

const over = Promise.resolve();
const wholeBody = (bytes: Uint8Array): BodyRead => ({ ended: true, received: () => bytes, done: over });
