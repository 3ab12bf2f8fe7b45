import type { JsonText } from "./event.ts";

/** How an account's inbox answers the deliveries that it gets. */
export interface InboxAnswer {
  readonly status: number;
  readonly delayMs: number;
  /** It never answers, whatever the rest says. */
  readonly silent: boolean;
}

/** A delivery as an inbox received it. */
export interface InboxDelivery {
  readonly id: string;
  readonly receivedAt: number;
  readonly eventId: string;
  readonly headers: Readonly<Record<string, string>>;
  /** UTF-8. */
  readonly body: Uint8Array;
  /** The status it is answered with; null: no answer within an attempt's time. */
  readonly answeredStatus: number | null;
  readonly isTest: boolean;
}

/** A delivery in a list of them. */
export type ListedDelivery = Omit<InboxDelivery, "body"> & { readonly body: JsonText };
