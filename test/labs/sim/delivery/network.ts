import type { Outcome, Transport } from "../../../../src/delivery/network/transport.ts";
import type { DeliveryRequest } from "../../../../src/delivery/request.ts";
import type { DueDelivery } from "../../../../src/domain/delivery.ts";
import type { NoResponseCause } from "../../../../src/domain/failure.ts";
import type { Interruption } from "../../../../src/lib/interruption.ts";
import type { Random } from "../../../../src/lib/random.ts";
import type { FakeClock } from "../../../support/fake-clock.ts";

/** How a receiver behaves for a while. */
export const moods = ["good", "slow", "trickling", "flaky", "busy", "failing", "refusing", "down", "silent"] as const;
export type Mood = (typeof moods)[number];

/** One attempt as the world saw it. */
export interface Sent {
  readonly delivery: DueDelivery;
  /** By the wall clock. */
  readonly at: number;
  /** `lost`: the program crashed before it knew. `broken off`: by the program itself. */
  fate: "under way" | "answered" | "unanswered" | "broken off" | "lost";
  status: number | null;
  retryAfter: string | null;
  /** By the wall clock, when its outcome was known. */
  endedAt: number | null;
  /** Its outcome is on disk; or it never will be, because the program ended first. */
  isRecorded: boolean;
  isForgotten: boolean;
}

export interface NetworkDeps {
  clock: FakeClock;
  random: Random;
  isQuiet(): boolean;
  /** Told just before an attempt goes out. */
  onSend(request: DeliveryRequest, sent: Sent): void;
  /** Told as its outcome comes back. */
  onOutcome(sent: Sent): void;
}

const attemptMs = 10_000;
/** A grid, so that many things happen in the same moment. */
const quick: readonly [number, ...number[]] = [0, 0, 5, 10, 10, 20, 50];
const nothing = new Uint8Array(0);

/** All receivers in the world, and the way to them. */
export function createNetwork({ clock, random, isQuiet, onSend, onOutcome }: NetworkDeps) {
  const moodOf = new Map<string, Mood>();
  const all: Sent[] = [];
  /** How many of them belong to runs of the program that are over. */
  let forgotten = 0;
  const underWay = new Map<Sent, { breakOff(): void; forget(): void }>();

  function send(request: DeliveryRequest, signal?: Interruption): Promise<Outcome> {
    const sent: Sent = {
      delivery: request.delivery,
      at: clock.now(),
      fate: "under way",
      status: null,
      retryAfter: null,
      endedAt: null,
      isRecorded: false,
      isForgotten: false,
    };
    onSend(request, sent);
    all.push(sent);
    return new Promise((resolve) => {
      const startedAt = clock.monotonicMs();
      const cancels: (() => void)[] = [];
      const after = (delayMs: number, action: () => void) => void cancels.push(clock.after(delayMs, action));
      let endBody = () => {};
      const forget = () => {
        for (const cancel of cancels) cancel();
        signal?.removeEventListener("abort", listener);
        underWay.delete(sent);
      };
      const end = (fate: Sent["fate"], outcome: Outcome) => {
        sent.fate = fate;
        sent.endedAt = clock.now();
        resolve(outcome);
        onOutcome(sent);
      };
      function breakOff(): void {
        forget();
        if (sent.fate === "under way") end("broken off", unanswered("interrupted"));
        else endBody();
      }
      const listener = { handleEvent: breakOff };
      const unanswered = (cause: NoResponseCause): Outcome => ({
        kind: "no-response",
        cause,
        durationMs: clock.monotonicMs() - startedAt,
      });
      underWay.set(sent, { breakOff, forget });
      signal?.addEventListener("abort", listener);
      if (signal?.aborted) return breakOff();

      const plan = isQuiet() ? good() : planOf(moodOf.get(request.url) ?? "good");
      if (plan.afterMs >= attemptMs || plan.kind === "silent") {
        after(attemptMs, () => {
          forget();
          end("unanswered", unanswered("timeout"));
        });
        return;
      }
      after(plan.afterMs, () => {
        if (plan.kind === "fails") {
          forget();
          return end("unanswered", unanswered(plan.cause));
        }
        let ended = plan.bodyMs === 0;
        let received: Uint8Array = ended ? plan.body : nothing;
        let finish = () => {};
        const done = ended ? Promise.resolve() : new Promise<void>((settle) => (finish = settle));
        endBody = () => {
          ended = true;
          finish();
        };
        sent.status = plan.status;
        sent.retryAfter = plan.retryAfter;
        if (ended) forget();
        else {
          // The body has the rest of the attempt's time.
          after(Math.min(plan.bodyMs, attemptMs - plan.afterMs), () => {
            if (plan.afterMs + plan.bodyMs < attemptMs) received = plan.body;
            forget();
            endBody();
          });
        }
        end("answered", {
          kind: "responded",
          status: plan.status,
          retryAfter: plan.retryAfter ?? undefined,
          head: null,
          durationMs: clock.monotonicMs() - startedAt,
          body: {
            get ended() {
              return ended;
            },
            received: () => received,
            done,
          },
        });
      });
    });
  }

  type Plan =
    | { kind: "silent"; afterMs: number }
    | { kind: "fails"; afterMs: number; cause: NoResponseCause }
    | {
        kind: "answers";
        afterMs: number;
        status: number;
        retryAfter: string | null;
        bodyMs: number;
        body: Uint8Array;
      };

  const answers = (
    status: number,
    rest: { afterMs?: number; retryAfter?: string | null; bodyMs?: number } = {},
  ): Plan => ({
    kind: "answers",
    afterMs: rest.afterMs ?? random.pick(quick),
    status,
    retryAfter: rest.retryAfter ?? null,
    bodyMs: rest.bodyMs ?? 0,
    body: Buffer.from(`answer ${status}`),
  });

  const good = () => answers(random.pick([200, 202, 204]));

  function planOf(mood: Mood): Plan {
    switch (mood) {
      case "good":
        return good();
      case "slow":
        return answers(200, { afterMs: random.pick([500, 1_000, 4_000, 9_990, 9_999, 10_000, 12_000]) });
      case "trickling":
        return answers(random.pick([200, 200, 500]), { bodyMs: random.pick([5, 90, 100, 110, 2_000, 20_000]) });
      case "flaky":
        return planOf(random.pick(["good", "good", "failing", "busy", "down", "slow", "trickling"]));
      case "busy":
        return answers(random.pick([429, 503]), { retryAfter: retryAfter() });
      case "failing":
        return answers(
          random.pick([500, 502, 503, 504, 301, 302, 500]),
          random.chance(0.2) ? { retryAfter: "60" } : {},
        );
      case "refusing":
        return answers(random.pick([400, 401, 404, 410, 422]));
      case "down":
        return {
          kind: "fails",
          afterMs: random.pick(quick),
          cause: random.pick([
            "connection_refused",
            "connection_reset",
            "dns_failed",
            "tls_failed",
            "host_unreachable",
            "protocol_error",
          ]),
        };
      case "silent":
        return { kind: "silent", afterMs: attemptMs };
    }
  }

  function retryAfter(): string | null {
    const luck = random.next();
    if (luck < 0.2) return null;
    if (luck < 0.6) return String(random.pick([0, 1, 3, 20, 120]));
    if (luck < 0.9) return new Date(clock.now() + random.between(-10, 90) * 1000).toUTCString();
    return random.pick(["soon", "-5", "1.5", ""]);
  }

  return {
    send: send satisfies Transport<DeliveryRequest>["send"],
    /** Every attempt ever made. */
    all: all as readonly Sent[],
    setMood: (url: string, mood: Mood) => void moodOf.set(url, mood),
    /** Also those that only wait for the rest of a body. */
    underWay: () => [...underWay.keys()],
    /** The program ends its connections. */
    close() {
      for (const { breakOff } of [...underWay.values()]) breakOff();
    },
    /** The program has died; nobody learns of what is under way. */
    drop() {
      for (const [sent, { forget }] of [...underWay]) {
        forget();
        if (sent.fate === "under way") sent.fate = "lost";
      }
      for (; forgotten < all.length; forgotten += 1) {
        const sent = all[forgotten];
        if (sent) sent.isForgotten = !sent.isRecorded;
      }
    },
  };
}

export type Network = ReturnType<typeof createNetwork>;
