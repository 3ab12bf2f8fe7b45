import type { DueDelivery } from "../domain/delivery.ts";
import { isUnavailable } from "../domain/errors.ts";
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
  /** `aborted`: we broke the attempt off; as far as the record goes, it never happened. */
  readonly kind: "settled" | "superseded" | "gone" | "aborted";
  /** Whether the webhook answered at all. */
  readonly answered: boolean;
  readonly next: NextStep | null;
  /** Resolves when the connection is free again, if the answer is still arriving or the request still being sent. */
  readonly connectionFree: Promise<void> | null;
  /** The next delivery in its ordered line is due. */
  readonly hasReleased?: boolean;
}

/** What the dispatcher knows about the route to a webhook; consulted right up to the last moment. */
export interface Route {
  /** Aborts what is in flight: the account has been deleted, or other servers have taken the deliveries over. */
  readonly signal: Interruption;
  /** See `SendOrder`. */
  readonly isFresh: boolean;
  /** Nothing more may start: the webhook was removed, or the account is suspended. */
  isClosed(): boolean;
  /** Something is waiting for this attempt to end: for its place, or for its turn. */
  isAwaited(): boolean;
}

/** Called for every attempt once it is on disk. */
export type Announce = (settlement: Settlement, kind: "settled" | "superseded") => void;

/** A body that takes longer than this after its head is logged later: the verdict does not wait for it. */
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
  /** The store has stopped taking writes (true) or takes them again (false); in between, nothing new should start. */
  onStorageStalled?(stalled: boolean): void;
}

/** One attempt, from record to record: build, sign, send, judge, settle, announce. */
export function createDeliver(deps: DeliverDeps) {
  const { clock, signers, headerVault, sender, store, retry, announce } = deps;

  return async function deliver(delivery: DueDelivery, route: Route): Promise<Delivered> {
    const found = signers.materialFor(delivery.tenantKey, delivery.tenantId);
    const material = found instanceof Promise ? await found : found;
    const headers = headerVault.open(delivery.tenantId, delivery.sealedHeaders);
    const startedAt = clock.now();
    // Nothing may be awaited between this check and the send, which takes a turn or two of the event loop at most: no other attempt
    // starts to a webhook that has been removed.
    if (route.isClosed()) return broken;
    const outcome = await sender.send(
      { delivery, material, headers, now: startedAt, isFresh: route.isFresh },
      route.signal,
    );
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
    // Whatever is in the attempt log is announced, even for a record that a replay has replaced; a deleted account has
    // nothing there.
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
 * Keeps trying to record an outcome that the store did not accept, however long the disk stays full: forgetting it would
 * mean sending the event again. Attempts in flight are bounded, and so is what waits here.
 * @throws whatever the store throws, unless it only says that it takes no writes right now
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
  const isStalled = isUnavailable(error) && error.code !== "shutting_down";
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
  // The rest of a body is only a convenience for readers of the log: the attempt is complete without it.
  await store.completeResponseBody(attempt, body.received()).catch(() => {});
}
