import { unavailable } from "../../src/domain/errors.ts";
import type { Store } from "../../src/store/store.ts";

/** Makes one call to a store fail, counting from a given moment. */
export interface StoreFaults {
  wrap(store: Store): Store;
  /** From now on calls are counted, and the `nth` call of this method fails; 0: none. */
  arm(verb: string, nth: number): void;
  /** Stops counting. @returns how often each method was called, and whether one failed */
  disarm(): { calls: ReadonlyMap<string, number>; failed: boolean };
}

/**
 * Methods that fail after their effect: no caller waits for an answer that would reveal it. The contract of the seam
 * forbids this for the others (`unavailable` means that nothing was written; `lane.ts` sees to it), so those fail before.
 */
const failAfter: readonly string[] = [
  "touchApiKeys",
  "rememberLogin",
  "prune",
  "eraseDeleted",
  "forgetWebhooks",
  "reclaim",
  "completeResponseBody",
] satisfies (keyof Store)[];

export function createStoreFaults(): StoreFaults {
  let armed: { verb: string; nth: number; calls: Map<string, number>; failed: boolean } | null = null;

  return {
    wrap: (store) =>
      new Proxy(store, {
        get(target, name, receiver) {
          const member: unknown = Reflect.get(target, name, receiver);
          const verb = String(name);
          // These two are not methods that could fail.
          if (typeof member !== "function" || verb === "close" || verb === "oldestWaitingWriteMs") return member;
          return async (...args: unknown[]) => {
            const run = () => Reflect.apply(member, target, args);
            if (armed === null) return run();
            const nth = (armed.calls.get(verb) ?? 0) + 1;
            armed.calls.set(verb, nth);
            if (verb !== armed.verb || nth !== armed.nth) return run();
            armed.failed = true;
            if (failAfter.includes(verb)) await run();
            throw unavailable("The storage does not take this call.", "storage_unavailable", 1);
          };
        },
      }),
    arm(verb, nth) {
      armed = { verb, nth, calls: new Map(), failed: false };
    },
    disarm() {
      const { calls, failed } = armed ?? { calls: new Map<string, number>(), failed: false };
      armed = null;
      return { calls, failed };
    },
  };
}
