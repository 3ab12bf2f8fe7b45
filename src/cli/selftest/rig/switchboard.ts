import type { Clock } from "../../../lib/clock.ts";
import type { Random } from "../../../lib/random.ts";
import type { Account, Hook, Manner } from "./account.ts";
import { readDelivery } from "./delivery.ts";
import { type Faults, type Ledger, noteFault } from "./ledger.ts";
import { type Answer, type Arrival, type Receiver, startReceiver } from "./receiver.ts";

/** The receiver with all webhooks of a self-test: checks each delivery, notes it in its ledger and answers it. */
export interface Switchboard extends Pick<Receiver, "url" | "whenDrained" | "stop"> {
  /** Creates webhooks, each with its own path. */
  newHooks(manners: readonly Manner[]): Hook[];
  /** From now on deliveries to the account's webhooks are noted in the ledger. */
  connect(account: Account, ledger: Ledger): void;
  /** From now on a delivery to this webhook is a fault. */
  remove(hook: Hook): void;
  /** Deliveries with a valid signature so far. */
  readonly verified: number;
  /** Slow webhooks do not answer at all until the returned function is called. */
  hold(): () => void;
}

function answerOf(manner: Manner, isFirst: boolean): number {
  if (manner === "refusing") return refusal;
  return manner === "unsteady" && isFirst ? 503 : 204;
}

/** The longest time a slow webhook takes to answer. */
const byDefault = { slowestMs: 80 } as const;

/** The status of a webhook that refuses everything. */
export const refusal = 422;

export function startSwitchboard(
  clock: Clock,
  random: Random,
  faults: Faults,
  { slowestMs }: { slowestMs: number } = byDefault,
): Switchboard {
  const lines = new Map<string, { account: Account; hook: Hook; ledger: Ledger }>();
  let hooks = 0;
  let verified = 0;
  let held: Promise<void> | null = null;

  function receive(arrival: Arrival): Answer {
    const line = lines.get(arrival.path);
    if (!line) {
      noteFault(faults, `a delivery arrived at ${arrival.path}, which is not registered`);
      return { status: 404, after: 0 };
    }
    const { account, hook, ledger } = line;
    const delivery = readDelivery(account, arrival);
    if (typeof delivery === "string") {
      noteFault(faults, delivery);
      return { status: 400, after: 0 };
    }
    verified += 1;
    const isFirst = ledger.tally(hook.path, delivery.eventId).arrivals === 0;
    const status = answerOf(hook.manner, isFirst);
    const onEnd = ledger.received(delivery, status);
    if (hook.manner !== "slow") return { status, after: 0, onEnd };
    return { status, after: held ?? random.between(0, slowestMs), onEnd };
  }

  const receiver = startReceiver(clock, receive);
  return {
    url: receiver.url,
    whenDrained: receiver.whenDrained,
    stop: receiver.stop,
    newHooks: (manners) =>
      manners.map((manner) => {
        hooks += 1;
        return { path: `/hook/${hooks}`, manner };
      }),
    connect(account, ledger) {
      for (const hook of account.hooks) lines.set(hook.path, { account, hook, ledger });
    },
    remove: ({ path }) => void lines.delete(path),
    get verified() {
      return verified;
    },
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      return () => {
        held = null;
        resolve();
      };
    },
  };
}
