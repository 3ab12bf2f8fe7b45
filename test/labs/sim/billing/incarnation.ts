import { createBillingCalendar } from "../../../../src/billing/calendar.ts";
import { createPayments, type Payments } from "../../../../src/billing/payments.ts";
import type { PaymentProcessor } from "../../../../src/billing/processor.ts";
import type { Tenant } from "../../../../src/domain/tenant.ts";
import type { Clock } from "../../../../src/lib/clock.ts";
import type { KeyedLock } from "../../../../src/lib/keyed-lock.ts";
import type { Vault } from "../../../../src/lib/vault.ts";
import { everyJob } from "../../../../src/store/jobs.ts";
import type { Store } from "../../../../src/store/store.ts";
import { createLife, type Life } from "../../../support/mortal.ts";

/** One run of the program, from its start to its crash. What it was doing then never ends. */
export interface Incarnation {
  readonly payments: Payments;
  readonly store: Store;
  readonly isDead: boolean;
  crash(): void;
}

export interface IncarnationDeps {
  store: Store;
  /** One at a time for the account, of all that run. */
  lockOf(life: Life): KeyedLock<number>;
  processor: PaymentProcessor;
  clock: Clock;
  vault: Vault;
  prices: Readonly<Record<"free" | "pro" | "business" | "enterprise", number>>;
  /** Asked before and after every call to store and processor. True: the program dies here. */
  diesAt(moment: "before" | "after"): boolean;
  onCrash(): void;
  /** The biller gave up a step for a reason that no processor and no client has given it. */
  onFailure(error: string): void;
  /** Counts what is under way, so that the world knows when nothing is. */
  underWay(change: 1 | -1): void;
  /** How long an answer of the database is on its way. @default no time */
  travel?: () => Promise<void>;
}

/** One for all: to load the system's data of zones takes longer than many a run of the program. */
export const calendar = createBillingCalendar("Africa/Lagos");

/** Starts the program over the same store and the same processor. */
export function createIncarnation(deps: IncarnationDeps): Incarnation {
  const { clock, vault, prices, diesAt, onCrash, onFailure, underWay, travel } = deps;
  const life = createLife({ diesAt, onCrash, underWay, ...(travel && { travel }) });

  const store = life.mortal(deps.store);
  const payments = createPayments({
    store,
    jobs: everyJob,
    lock: deps.lockOf(life),
    clock,
    log: {
      enabled: () => false,
      write: (_level, event, fields) => {
        if (event === "billing.failed") onFailure(String(fields?.error));
      },
    },
    vault,
    processor: life.mortal(deps.processor),
    calendar,
    prices,
    isPaused: () => false,
    referenceSecret: new Uint8Array(32).fill(7),
    baseUrl: () => "https://relay.example",
    announce() {},
    checkEmail: async () => {},
    changeEmail: async (tenant: Tenant, email) => void (await store.changeEmail(tenant.key, email)),
    onUnknownLookUp() {},
    removeTenant: (tenant: Tenant) => store.deleteTenant(tenant.key, clock.now()),
  });
  payments.biller.start();
  return {
    payments,
    store,
    crash: life.crash,
    get isDead() {
      return life.isDead;
    },
  };
}
