import { type BodyRead, deliveryTimeoutMs, type Outcome } from "../delivery/network/transport.ts";
import type { DeliveryRequest } from "../delivery/request.ts";
import { DomainError } from "../domain/errors.ts";
import type { NoResponseCause } from "../domain/failure.ts";
import type { InboxAnswer, InboxDelivery } from "../domain/inbox.ts";
import type { Tenant } from "../domain/tenant.ts";
import type { Clock } from "../lib/clock.ts";
import { newId } from "../lib/id.ts";
import type { Interruption } from "../lib/interruption.ts";
import type { Log } from "../lib/log.ts";
import type { Store } from "../store/store.ts";

/** A receiver inside the server: it answers an attempt as a receiver at the other end of a connection would. */
export interface Inbox {
  /** Takes one delivery. A failure is returned, never thrown, as with every transport. */
  receive(request: DeliveryRequest, signal?: Interruption): Promise<Outcome>;
  /** Attempts in progress, and later ones, come back as `interrupted`. */
  close(): void;
}

export interface InboxDeps {
  store: Pick<Store, "inboxAnswer" | "keepInboxDelivery">;
  clock: Clock;
  log: Log;
  /** Called for a delivery that would otherwise go unannounced for a while, or forever. */
  announce(tenant: Tenant): void;
}

/** Rules, section 9. */
export const maxKeptDeliveries = 100;

export const defaultAnswer: InboxAnswer = { status: 204, delayMs: 0, silent: false };

/** An answer, or the reason for its absence. */
type Answered = { status: number; text: string } | NoResponseCause;

/** The time span of one attempt. */
interface Visit {
  /** Resolves when its time is up, or when we abort it. */
  readonly over: Promise<NoResponseCause>;
  /** Resolves `ms` from now, unless the visit has ended. */
  pause(ms: number): Promise<void>;
  end(): void;
}

export function createInbox({ store, clock, log, announce }: InboxDeps): Inbox {
  const underWay = new Set<() => void>();
  let closed = false;

  function begin(signal: Interruption | undefined): Visit {
    const { promise: over, resolve } = Promise.withResolvers<NoResponseCause>();
    const breakOff = () => resolve("interrupted");
    const timers = [clock.after(deliveryTimeoutMs, () => resolve("timeout"))];
    let ended = false;
    underWay.add(breakOff);
    const listener = { handleEvent: breakOff };
    signal?.addEventListener("abort", listener);
    return {
      over,
      pause: (ms) =>
        new Promise((wake) => {
          if (!ended) timers.push(clock.after(ms, wake));
        }),
      end() {
        ended = true;
        for (const cancel of timers) cancel();
        underWay.delete(breakOff);
        signal?.removeEventListener("abort", listener);
      },
    };
  }

  /** Stores the delivery, and only then answers it. */
  async function answer(request: DeliveryRequest, visit: Visit): Promise<Answered> {
    const { tenantKey, deliveryKey } = request.delivery;
    const told = (await store.inboxAnswer(tenantKey)) ?? defaultAnswer;
    const received = toInboxDelivery(request, told, clock.now());
    const tenant = await store.keepInboxDelivery(tenantKey, received, maxKeptDeliveries);
    // Any other delivery is announced by its attempt in a moment.
    if (told.silent || told.delayMs > 0 || deliveryKey === 0) announce(tenant);
    if (told.silent) return visit.over;
    if (told.delayMs > 0) await visit.pause(told.delayMs);
    return { status: told.status, text: hasContent(told.status) ? JSON.stringify({ inbox: received.id }) : "" };
  }

  /** How a receiver answers when it could not store what it received. */
  function explain(error: unknown, { eventId, tenantId }: DeliveryRequest["delivery"]): Answered {
    if (!(error instanceof DomainError)) {
      log.write("error", "inbox.failed", { eventId, tenantId, error: String(error) });
      return { status: 500, text: "" };
    }
    if (error.kind !== "unavailable") return "interrupted"; // The account was deleted meanwhile.
    return { status: 503, text: JSON.stringify({ message: error.message, code: error.code }) };
  }

  return {
    async receive(request, signal) {
      if (closed || signal?.aborted) return { kind: "no-response", cause: "interrupted", durationMs: 0 };
      const startedAtMs = clock.monotonicMs();
      const visit = begin(signal);
      const answered = answer(request, visit).catch((error: unknown) => explain(error, request.delivery));
      const ended = await Promise.race([visit.over, answered]);
      visit.end();
      const durationMs = clock.monotonicMs() - startedAtMs;
      if (typeof ended === "string") return { kind: "no-response", cause: ended, durationMs };
      const { status, text } = ended;
      return { kind: "responded", status, retryAfter: undefined, head: null, durationMs, body: wholeBody(text) };
    },

    close() {
      closed = true;
      for (const breakOff of underWay) breakOff();
    },
  };
}

/** Includes the headers that the network's transport adds: those that a receiver elsewhere would see. */
function toInboxDelivery(
  { url, headers, body, delivery }: DeliveryRequest,
  { status, delayMs, silent }: InboxAnswer,
  receivedAt: number,
): InboxDelivery {
  return {
    id: newId("ibx"),
    receivedAt,
    eventId: delivery.eventId,
    headers: { Host: new URL(url).host, ...headers, "Content-Length": String(body.length) },
    body,
    answeredStatus: silent || delayMs >= deliveryTimeoutMs ? null : status,
    isTest: delivery.deliveryKey === 0,
  };
}

/** RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5. */
const hasContent = (status: number) => status !== 204 && status !== 205 && status !== 304;

function wholeBody(text: string): BodyRead {
  const bytes = new TextEncoder().encode(text);
  return { ended: true, received: () => bytes, done: Promise.resolve() };
}
