import type { BillingAccount, InvoiceLine } from "../domain.ts";
import { newToken } from "../lib/id.ts";
import type { NewCharge, NewInvoice } from "../store/billing.ts";
import type { Store } from "../store/store.ts";
import { type BillingCalendar, lastDayOf } from "./calendar.ts";
import { leastChargeKobo, leastUpgradeKobo } from "./terms.ts";
import { heldDays, type Prices, type Usage, usageOf } from "./usage.ts";

export interface InvoicingDeps {
  store: Pick<Store, "planDays">;
  calendar: BillingCalendar;
  prices: Prices;
}

/** What the month has cost so far, and when it is charged. */
export interface MonthSoFar {
  readonly lines: readonly InvoiceLine[];
  readonly totalKobo: number;
}

/** Turns the days that a plan was held into invoices. Amounts are frozen as an invoice is made. */
export interface Invoicing {
  /** The month's end that is due; null when there is too little to charge, which waits for the next one. */
  ofMonth(account: BillingAccount): Promise<NewInvoice | null>;
  /** What the plan in force has cost until yesterday: today belongs to the higher plan. Never less than 100 NGN. */
  ofUpgrade(account: BillingAccount, now: number): Promise<NewInvoice>;
  /** All days that are not paid, at the end of the account; `openCreditKobo` was used by invoices that end with it. */
  ofClosing(account: BillingAccount, openCreditKobo: number, now: number): Promise<NewInvoice | null>;
  soFar(account: BillingAccount, now: number): Promise<MonthSoFar>;
}

export function createInvoicing({ store, calendar, prices }: InvoicingDeps): Invoicing {
  async function usage(account: BillingAccount, throughDay: number, countOpenInvoices = true): Promise<Usage> {
    const { periods, invoiced } = await store.planDays(account.key);
    const isInvoiced = (day: number) => (countOpenInvoices ? invoiced.has(day) : invoiced.get(day) === "paid");
    return usageOf(heldDays(periods, calendar, throughDay), isInvoiced, prices);
  }

  function lessCredit(kind: NewInvoice["kind"], used: Usage, creditKobo: number): NewInvoice | null {
    const creditUsedKobo = Math.min(creditKobo, used.totalKobo);
    const amountKobo = used.totalKobo - creditUsedKobo;
    return amountKobo < leastChargeKobo ? null : { id: newToken(80), kind, ...used, creditUsedKobo, amountKobo };
  }

  return {
    async ofMonth(account) {
      const throughDay = lastDayOf(calendar.monthOf(account.nextInvoiceAt ?? 0));
      return lessCredit("subscription", await usage(account, throughDay), account.creditKobo);
    },
    async ofUpgrade(account, now) {
      const used = await usage(account, calendar.dayOf(now) - 1);
      const amountKobo = Math.max(used.totalKobo, leastUpgradeKobo);
      return { id: newToken(80), kind: "upgrade", ...used, creditUsedKobo: 0, amountKobo };
    },
    async ofClosing(account, openCreditKobo, now) {
      const used = await usage(account, calendar.dayOf(now), false);
      return lessCredit("closing", used, account.creditKobo + openCreditKobo);
    },
    soFar: (account, now) => usage(account, calendar.dayOf(now)),
  };
}

const prefixes = { upgrade: "upg", subscription: "sub", closing: "end" } as const;

/** A reference for the nth charge of an invoice; it names nobody. */
export const chargeReference = (kind: NewInvoice["kind"], invoiceId: string, nth: number): string =>
  `${prefixes[kind]}-${invoiceId}-a${nth}`;

/** A reference for a hosted page. */
export const pageReference = (): string => `ver-${newToken(130)}`;

/** The charge of a saved card for an invoice, to be stored before it is sent. */
export const cardCharge = (
  { id, kind, amountKobo }: Pick<NewInvoice, "id" | "kind" | "amountKobo">,
  nth: number,
  processor: string,
  cardKey: number | null,
): NewCharge => ({ reference: chargeReference(kind, id, nth), processor, amountKobo, cardKey, lookUpAt: null });
