import type { BillingAccount, Invoice, InvoiceLine, NewCharge, NewInvoice } from "../domain/books.ts";
import type { Store } from "../store/store.ts";
import { type BillingCalendar, lastDayOf, monthOfDay } from "./calendar.ts";
import { cardlessReference, chargeReference } from "./references.ts";
import { leastChargeKobo, leastUpgradeKobo } from "./terms.ts";
import { heldDays, type Prices, type Usage, usageOf } from "./usage.ts";

export interface InvoicingDeps {
  store: Pick<Store, "planDays">;
  calendar: BillingCalendar;
  prices: Prices;
}

/** What the month has cost so far. */
export interface MonthSoFar {
  readonly lines: readonly InvoiceLine[];
  readonly totalKobo: number;
}

/** Turns the days on which a plan was held into invoices. Amounts are frozen when an invoice is made. */
export interface Invoicing {
  /**
   * The invoice for a month that has ended; null when the amount is too small to charge and waits for the next one. Never
   * for days to come: in another time zone, a month's end that was stored before the change may be a day early.
   */
  ofMonth(account: BillingAccount, id: string, month: string, now: number): Promise<NewInvoice | null>;
  /** What the plan in force has cost through yesterday: today belongs to the higher plan. Never less than 100 NGN. */
  ofUpgrade(account: BillingAccount, id: string, now: number): Promise<NewInvoice>;
  /** All unpaid days when the account closes; `openCreditKobo` is the credit used by open invoices, which end with it. */
  ofClosing(account: BillingAccount, id: string, openCreditKobo: number, now: number): Promise<NewInvoice | null>;
  /** The billing months in which those days may have been charged. */
  monthsOfClosing(account: BillingAccount, now: number): Promise<string[]>;
  soFar(account: BillingAccount, now: number): Promise<MonthSoFar>;
}

export function createInvoicing({ store, calendar, prices }: InvoicingDeps): Invoicing {
  async function usage(account: BillingAccount, throughDay: number, countOpenInvoices = true): Promise<Usage> {
    const { periods, invoiced } = await store.planDays(account.key);
    const isInvoiced = (day: number) => (countOpenInvoices ? invoiced.has(day) : invoiced.get(day) === "paid");
    return usageOf(heldDays(periods, calendar, throughDay), isInvoiced, prices);
  }

  function lessCredit(kind: NewInvoice["kind"], id: string, used: Usage, creditKobo: number): NewInvoice | null {
    const creditUsedKobo = Math.min(creditKobo, used.totalKobo);
    const amountKobo = used.totalKobo - creditUsedKobo;
    return amountKobo < leastChargeKobo ? null : { id, kind, ...used, creditUsedKobo, amountKobo };
  }

  return {
    async ofMonth(account, id, month, now) {
      const throughDay = Math.min(lastDayOf(month), calendar.dayOf(now));
      return lessCredit("subscription", id, await usage(account, throughDay), account.creditKobo);
    },
    async ofUpgrade(account, id, now) {
      const used = await usage(account, calendar.dayOf(now) - 1);
      const amountKobo = Math.max(used.totalKobo, leastUpgradeKobo);
      return { id, kind: "upgrade", ...used, creditUsedKobo: 0, amountKobo };
    },
    async ofClosing(account, id, openCreditKobo, now) {
      const used = await usage(account, calendar.dayOf(now), false);
      return lessCredit("closing", id, used, account.creditKobo + openCreditKobo);
    },
    async monthsOfClosing(account, now) {
      const { days } = await usage(account, calendar.dayOf(now), false);
      // After a month's end, at noon on its last day, the next billing month has begun.
      const last = calendar.monthOf(calendar.nextMonthEnd(account.nextInvoiceAt ?? now));
      return [...new Set([...days.map(({ day }) => monthOfDay(day)), last])];
    },
    soFar: (account, now) => usage(account, calendar.dayOf(now)),
  };
}

/** The charge of a saved card for an invoice, to be stored before it is sent. */
export const cardCharge = (
  { id, kind, amountKobo }: Pick<NewInvoice, "id" | "kind" | "amountKobo">,
  nth: number,
  processor: string,
  cardKey: number | null,
): NewCharge => ({ reference: chargeReference(kind, id, nth), processor, amountKobo, cardKey, lookUpAt: null });

/** A placeholder for a charge while there is no card for it. */
export const cardlessCharge = (
  { id, kind, amountKobo, attempts }: Pick<Invoice, "id" | "kind" | "amountKobo" | "attempts">,
  processor: string,
  cardKey: number | null,
): NewCharge => ({
  reference: cardlessReference(kind, id, attempts + 1),
  processor,
  amountKobo,
  cardKey,
  lookUpAt: null,
});
