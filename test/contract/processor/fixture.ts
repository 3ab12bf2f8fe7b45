import type { PaymentProcessor } from "../../../src/billing/processor.ts";

/** A processor to run the suite over, and the other people of a payment. */
export interface ProcessorFixture {
  readonly processor: PaymentProcessor;
  readonly customer: Customer;
  /** An address that it does not take. */
  readonly refusedEmail: string;
  /** How often money was taken under a reference; 0 for one that is unknown. */
  timesCharged(reference: string): number | Promise<number>;
  /** The callback that the processor sent for a payment that succeeded; waits for it. */
  callbackFor(reference: string): Promise<{ body: Uint8Array; headers: Headers }>;
  /** The header that makes a callback worth reading; its value is hex. */
  readonly signatureHeader: string;
  stop(): Promise<void>;
}

/**
 * Somebody at a hosted page: `page` is the address that the processor gave for it. Those who pay use the very same card
 * each time that they use a card of one kind.
 */
export interface Customer {
  /** With a card that can be charged again. */
  pays(page: string): Promise<void>;
  /** The bank declines the card. */
  declines(page: string): Promise<void>;
  paysWithCardThatIsNotReusable(page: string): Promise<void>;
  /** Later charges are declined for want of funds. */
  paysWithCardThatDeclinesLater(page: string): Promise<void>;
  /** Later charges want a confirmation. */
  paysWithCardThatAsksLater(page: string): Promise<void>;
  /** On the page of a later charge. */
  confirms(page: string): Promise<void>;
}
