import type { DueDelivery } from "../domain/delivery.ts";
import { DomainError } from "../domain/errors.ts";
import type { NextStep } from "../domain/settlement.ts";
import { type Clock, sleep } from "../lib/clock.ts";
import type { Interruption } from "../lib/interruption.ts";
import type { AttemptRef, Settled, Settlement } from "../store/deliveries.ts";
import type { Store } from "../store/store.ts";
import type { Outcome } from "./network/transport.ts";
import type { HeaderVault } from "./own-headers.ts";
import type { RetryPolicy } from "./retry.ts";
import type { Sender } from "./sender.ts";
import type { Signers } from "./signers.ts";
import { judge, type Verdict } from "./verdict.ts";

/** How one attempt went, for the dispatcher. */
export interface Delivered {
  /** `aborted`: the attempt was broken off by us and did not happen, as far as the record goes. */
  readonly kind: "settled" | "superseded" | "gone" | "aborted";
  /** Whether the webhook answered at all. */
  readonly answered: boolean;
  readonly next: NextStep | null;
  /** Resolves when the connection is free again, if the body of the answer is still coming. */
  readonly connectionFree: Promise<void> | null;
  /** The next delivery of its line is due. */
  readonly hasReleased?: boolean;
}

/** What the dispatcher knows of the way to a webhook, asked until the last moment. */
export interface Route {
  /** Breaks off what is in flight: the account is deleted. */
  readonly signal: Interruption;
  /** Nothing more may start: the webhook was removed, or the account is suspended. */
  isClosed(): boolean;
  /** Something waits for the end of this attempt: for its place, or its turn. */
  isAwaited(): boolean;
}

/** Called for every attempt once it is on disk. */
export type Announce = (settlement: Settlement, kind: "settled" | "superseded") => void;

/** A body that is later than this after its head is logged later: the verdict does not wait for it. */
const bodyGraceMs = 100;

/** Pause before retrying to record an outcome that the store did not accept. */
const settleRetryMs = 1000;

export interface DeliverDeps {
  clock: Clock;
  signers: Signers;
  headerVault: Pick<HeaderVault, "open">;
  sender: Sender;
  store: Pick<Store, "settle" | "completeResponseBody">;
  retry: RetryPolicy;
  announce: Announce;
  /** The store takes no writes (true) or takes them again (false): until then nothing new should start. */
  onStorageStalled?(stalled: boolean): void;
}

/** One attempt, from the record to the record: build, sign, send, judge, settle, announce. */
export function createDeliver(deps: DeliverDeps) {
  const { clock, signers, headerVault, sender, store, retry, announce } = deps;

  return async function deliver(delivery: DueDelivery, route: Route): Promise<Delivered> {
    const found = signers.materialFor(delivery.tenantKey, delivery.tenantId);
    const material = found instanceof Promise ? await found : found;
    const headers = headerVault.open(delivery.tenantId, delivery.sealedHeaders);
    const startedAt = clock.now();
    // Nothing may be awaited between this look and the sending: no attempt starts to a webhook that has been removed.
    if (route.isClosed()) return broken;
    const outcome = await sender.send({ delivery, material, headers, now: startedAt }, route.signal);
    if (outcome.kind === "no-response" && outcome.cause === "interrupted") return broken;
    const verdict = judge(outcome, delivery.url);
    const next = retry.after(verdict, delivery.attemptsInRun + 1, clock.now());
    const body = outcome.kind === "responded" ? outcome.body : null;
    if (body && !body.ended) await Promise.race([body.done, sleep(clock, bodyGraceMs)]);
    const settlement: Settlement = { delivery, attempt: toAttempt(outcome, verdict, startedAt), next };
    const isAwaited = route.isAwaited();
    let settled: Settled;
    try {
      settled = await store.settle(settlement, isAwaited);
    } catch (error) {
      settled = await settleLater(deps, settlement, isAwaited, error);
    }
    // What is in the log is told, also of a record that a replay has replaced; of a deleted account nothing is.
    if (settled.attempt !== null) announce(settlement, settled.kind === "settled" ? "settled" : "superseded");
    const connectionFree = body && !body.ended ? logRest(deps, settled.attempt, body) : null;
    const { kind, hasReleased = false } = settled;
    return { kind, answered: outcome.kind === "responded", next, connectionFree, hasReleased };
  };
}

const broken: Delivered = { kind: "aborted", answered: false, next: null, connectionFree: null };

function toAttempt(outcome: Outcome, verdict: Verdict, startedAt: number): Settlement["attempt"] {
  const received = outcome.kind === "responded" ? outcome.body.received() : null;
  const failure = verdict.kind === "acknowledged" ? null : verdict.failure;
  return {
    startedAt,
    durationMs: Math.round(outcome.durationMs),
    statusCode: outcome.kind === "responded" ? outcome.status : null,
    errorCode: failure?.code ?? null,
    error: failure?.reason ?? null,
    responseBody: received && received.length > 0 ? received : null,
    answerHead: outcome.kind === "responded" ? outcome.head : null,
  };
}

/**
 * Records an outcome that the store did not accept, however long the disk is full: forgetting it would mean to send the event
 * again. The attempts in flight are bounded, and so is what waits here.
 * @throws what the store says, unless it is that it takes no writes now
 */
async function settleLater(
  { store, clock, onStorageStalled }: DeliverDeps,
  settlement: Settlement,
  isAwaited: boolean,
  refusal: unknown,
): Promise<Settled> {
  throwUnlessStalled(refusal);
  onStorageStalled?.(true);
  try {
    for (;;) {
      await sleep(clock, settleRetryMs);
      try {
        return await store.settle(settlement, isAwaited);
      } catch (error) {
        throwUnlessStalled(error);
      }
    }
  } finally {
    onStorageStalled?.(false);
  }
}

function throwUnlessStalled(error: unknown): void {
  const isStalled = error instanceof DomainError && error.kind === "unavailable" && error.code !== "shutting_down";
  if (!isStalled) throw error;
}

async function logRest(
  { store }: DeliverDeps,
  attempt: AttemptRef | null,
  body: { received(): Uint8Array; done: Promise<void> },
): Promise<void> {
  const before = body.received().length;
  await body.done;
  if (attempt === null || body.received().length === before) return;
  // The rest of a body is a convenience of the log: without it the attempt is still complete.
  await store.completeResponseBody(attempt, body.received()).catch(() => {});
}
