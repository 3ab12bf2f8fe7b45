import type { LaterCharge } from "./paystack-answers.ts";
import type { Operation } from "./paystack-requests.ts";

/** How money behaves for payments made after a change. Initially nothing is set. */
export interface MoneyFaults {
  /** What every saved card does, regardless of its own behaviour. */
  savedCard: LaterCharge | null;
  /** Charges this amount, whatever was requested. */
  amountKobo: number | null;
  /** Charges in this currency. */
  currency: string | null;
  /** No card can be charged again. */
  notReusable: boolean;
}

/**
 * What happens to one request. `before` and `after` say whether Paystack has acted on it by then: the two look the same
 * to us, and only a look-up tells them apart.
 */
export type RequestFault =
  /** No answer, ever. */
  | "timeout_before_effect"
  | "timeout_after_effect"
  /** The connection is closed instead of answering. */
  | "reset_before_effect"
  | "reset_after_effect"
  | "rate_limited"
  /** 503 as a load balancer sends it: not in JSON. */
  | "unavailable"
  | "unavailable_after_effect"
  /** 200, with half of the answer. */
  | "malformed_json"
  /** 200 and valid JSON, but 2 MiB of it. */
  | "too_long"
  | "redirect"
  | "invalid_key"
  /** The answer waits for `release()`. */
  | "slow";

export interface PaystackFaults extends MoneyFaults {
  /** Happens to the next request of this kind; several are queued. */
  next(operation: Operation, fault: RequestFault): void;
  /** Happens to every request of this kind that no other fault is queued for. */
  every(operation: Operation, fault: RequestFault): void;
  /** Holds an answer back until `release`. */
  hold(answer: () => void): void;
  /** Releases the answers held back as slow. */
  release(): void;
  /** Whether a payment's callback is sent before or after the customer's browser returns. @default "after" */
  callbackOrder: "before" | "after";
  /** How often each callback is sent. @default 1 */
  callbackTimes: 0 | 1 | 2;
  /** The fault for the request that has just come in. */
  take(operation: Operation): RequestFault | undefined;
  /** Restores a Paystack that works. */
  clear(): void;
}

const none = {
  savedCard: null,
  amountKobo: null,
  currency: null,
  notReusable: false,
  callbackOrder: "after",
  callbackTimes: 1,
} as const;

export function createPaystackFaults(): PaystackFaults {
  const following = new Map<Operation, RequestFault[]>();
  const standing = new Map<Operation, RequestFault>();
  const held = new Set<() => void>();

  const faults: PaystackFaults = {
    ...none,
    next(operation, fault) {
      following.set(operation, [...(following.get(operation) ?? []), fault]);
    },
    every(operation, fault) {
      standing.set(operation, fault);
    },
    hold(answer) {
      held.add(answer);
    },
    release() {
      for (const answer of held) answer();
      held.clear();
    },
    take: (operation) => following.get(operation)?.shift() ?? standing.get(operation),
    clear() {
      following.clear();
      standing.clear();
      Object.assign(faults, none);
    },
  };
  return faults;
}

/** Whether a request with this fault has no effect. */
export const hasNoEffect = (fault: RequestFault | undefined): boolean =>
  fault !== undefined && (fault.endsWith("_before_effect") || withoutEffect.has(fault));

const withoutEffect = new Set<RequestFault>(["rate_limited", "unavailable", "redirect"]);
