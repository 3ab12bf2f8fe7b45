import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createBillingCalendar } from "../../src/billing/calendar.ts";
import { createCardVault } from "../../src/billing/card-vault.ts";
import { createPayments } from "../../src/billing/payments.ts";
import type { ChargeableCard, PaymentProcessor, Succeeded } from "../../src/billing/processor.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { newToken } from "../../src/lib/id.ts";
import { createKeyedLock } from "../../src/lib/keyed-lock.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createVault } from "../../src/lib/vault.ts";
import { everyJob, type Jobs } from "../../src/store/jobs.ts";
import { openStore } from "../../src/store/open.ts";
import type { Store } from "../../src/store/store.ts";
import { newTenant } from "./store-factory.ts";

export interface MonthEndOptions {
  readonly accounts: number;
  readonly chargesPerSecond: number;
  /** How long the processor takes for a charge. @default 0 */
  readonly chargeMs?: number;
  /** The store of each node, all on one database; they stay open. @default a new store for a single node */
  readonly stores?: readonly [Store, ...Store[]];
}

const card: ChargeableCard = {
  token: "AUTH_1",
  email: "ada@example.com",
  signature: null,
  brand: "visa",
  last4: "4081",
  expMonth: "12",
  expYear: "2040",
};

/** Accounts whose month has just ended, in key order, at a processor that accepts this many charges a second. */
export async function startMonthEnd({ accounts, chargesPerSecond, chargeMs = 0, stores }: MonthEndOptions) {
  const clock = systemClock;
  const { nodes, end } = stores ? { nodes: stores, async end() {} } : await openSingle();
  const [store] = nodes;
  const vault = createVault(randomBytes(32));
  const charged: string[] = [];
  const paid = new Map<string, Succeeded>();
  /** Calls of the method that postpones an account. */
  const putOff: number[] = [];

  const succeed = (reference: string, amountKobo: number): Succeeded => {
    const state: Succeeded = {
      kind: "succeeded",
      reference,
      amountKobo,
      requestedKobo: amountKobo,
      currency: "NGN",
      mode: "test",
      transactionId: `id-${reference}`,
      card,
    };
    paid.set(reference, state);
    return state;
  };

  const processor: PaymentProcessor = {
    name: "paystack",
    mode: "test",
    chargesPerSecond,
    startVerification: async ({ reference }) => ({ kind: "ready", url: `https://pay.example/${reference}` }),
    lookUp: async (reference) => paid.get(reference) ?? { kind: "not_found" },
    async chargeSavedCard({ reference, amountKobo }) {
      charged.push(reference);
      await new Promise((resolve) => setTimeout(resolve, chargeMs));
      return { kind: "state", state: succeed(reference, amountKobo) };
    },
    refund: async () => ({ kind: "accepted" }),
    readCallback: () => null,
    forgetCard: async () => ({ kind: "forgotten" }),
  };

  /** A separate run of the program over a store. `onCharge`: it begins a charge. */
  const begin = ({
    jobs = everyJob,
    onCharge = () => {},
    over = store,
  }: {
    jobs?: Jobs;
    onCharge?(): void;
    over?: Store;
  } = {}) =>
    createPayments({
      store: {
        ...over,
        postpone(accountKey, version, at) {
          putOff.push(accountKey);
          return over.postpone(accountKey, version, at);
        },
      },
      clock,
      log: silentLog,
      vault,
      processor: {
        ...processor,
        chargeSavedCard(order) {
          onCharge();
          return processor.chargeSavedCard(order);
        },
      },
      jobs,
      lock: createKeyedLock(),
      calendar: createBillingCalendar("Africa/Lagos"),
      prices: { free: 0, pro: 1_500_000, business: 6_000_000, enterprise: 0 },
      referenceSecret: new Uint8Array(32).fill(7),
      isPaused: () => false,
      baseUrl: () => "https://relay.example",
      announce() {},
      removeTenant: async () => {},
      checkEmail: async () => {},
      changeEmail: async () => {},
      onUnknownLookUp() {},
    });

  /** An account on pro that is waiting for its card to be verified. */
  async function subscribe() {
    const ids = { accountId: `bill_${newToken(60)}`, token: newToken(130) };
    const tenant = await store.createTenant(
      { ...newTenant({ tier: "pro" }), enforcedTier: null, verification: ids },
      clock.now(),
    );
    const key = (await store.billingAccountOf(tenant.key)) ?? 0;
    const { verification } = await store.books(key);
    const reference = `ver-${newToken(60)}`;
    const page = { reference, processor: "paystack:test", amountKobo: 10_000, cardKey: null, lookUpAt: null };
    await store.preparePage(verification?.key ?? 0, page, clock.now());
    return { key, id: ids.accountId, reference };
  }

  const keys: number[] = [];
  for (let n = 0; n < accounts; n += 1) {
    const { key, id, reference } = await subscribe();
    const sealed = createCardVault(vault).seal(card, "paystack:test", id);
    const monthEnd = clock.now() + 100;
    await store.settleVerification(reference, sealed, { transactionId: "1" }, monthEnd, clock.now());
    keys.push(key);
  }

  return {
    begin,
    store,
    keys,
    charged,
    putOff,
    /** A customer pays on a hosted page, and the processor is about to report it. @returns its reference */
    async payPage() {
      const { key, reference } = await subscribe();
      succeed(reference, 10_000);
      return { key, reference };
    },
    /** The accounts that were charged, in that order. */
    async order(): Promise<number[]> {
      const found = await Promise.all(charged.map((reference) => store.findCharge(reference)));
      return found.map((charge) => charge?.accountKey ?? 0);
    },
    isVerified: async (accountKey: number) => (await store.books(accountKey)).account.verifiedAt !== null,
    end,
  };
}

async function openSingle() {
  const dataDir = mkdtempSync(join(tmpdir(), "postrider-month-end-"));
  const { store } = await openStore({ dataDir, clock: systemClock, pauses: false });
  const nodes = [store] as const;
  return {
    nodes,
    async end() {
      await store.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
