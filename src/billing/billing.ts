import type { Config } from "../config.ts";
import { pricesOf } from "../domain/plans.ts";
import type { Loop } from "../lib/loop.ts";
import type { SandboxBooks } from "../store/sandbox-books.ts";
import { createBookCloser } from "./book-closer.ts";
import { createBillingCalendar } from "./calendar.ts";
import { createPayments, type PaymentDeps, type Payments } from "./payments.ts";
import { createPaystack } from "./paystack/paystack.ts";
import type { PaymentProcessor } from "./processor.ts";
import { createCallbackSender } from "./sandbox/callback-sender.ts";
import { createSandbox, type Sandbox } from "./sandbox/sandbox.ts";
import type { Prices } from "./usage.ts";

/** What accounts pay, and the processor that takes it, as the settings say (rules, sections 1 and 12). */
export interface Billing {
  readonly prices: Prices;
  /** Null: nobody pays. */
  readonly payments: Payments | null;
  /** What becomes of accounts in the background. Wake it when one was deleted. */
  readonly work: Loop;
  /** The processor, when it is the built-in one: it has pages of its own. */
  readonly sandbox: Sandbox | null;
  /** Cancels the callbacks that the built-in processor has yet to deliver. The work must be stopped first. */
  close(): Promise<void>;
}

export interface BillingDeps
  extends Omit<PaymentDeps, "processor" | "calendar" | "prices" | "referenceSecret" | "baseUrl"> {
  sandboxBooks: SandboxBooks;
  settings: Pick<Config, "payments" | "billingTimeZone"> & Parameters<typeof pricesOf>[0];
  /** See `deriveSecret`. */
  secretFor(purpose: string): Uint8Array;
  /** Where browsers reach this program. */
  publicUrl(): string;
  /** Where this program reaches itself: the built-in processor calls back over HTTP, as any other does. */
  ownUrl(): string;
}

export function createBilling({ settings, sandboxBooks, secretFor, publicUrl, ownUrl, ...deps }: BillingDeps): Billing {
  const { store, jobs, clock, log } = deps;
  const prices = pricesOf(settings);

  const paymentsBy = (processor: PaymentProcessor): Payments =>
    createPayments({
      ...deps,
      processor,
      calendar: createBillingCalendar(settings.billingTimeZone),
      prices,
      referenceSecret: secretFor("charge references"),
      baseUrl: publicUrl,
    });

  const { payments: chosen } = settings;
  if (chosen.kind === "off") {
    const work = createBookCloser({ store, jobs, clock, log });
    return { prices, payments: null, work, sandbox: null, close: async () => {} };
  }
  if (chosen.kind === "paystack") {
    const payments = paymentsBy(createPaystack({ ...chosen, clock }));
    return { prices, payments, work: payments.biller, sandbox: null, close: async () => {} };
  }
  const callbacks = createCallbackSender({ url: () => `${ownUrl()}/pay/callback`, clock, log });
  const secret = secretFor("sandbox payment processor");
  const sandbox = createSandbox({ books: sandboxBooks, clock, secret, publicUrl, postCallback: callbacks.post });
  const payments = paymentsBy(sandbox);
  return { prices, payments, work: payments.biller, sandbox, close: callbacks.stop };
}
