import type { DeliveryState } from "./delivery.ts";
import { isPlain } from "./event-types.ts";
import type { WebhookSettings } from "./webhook.ts";

/** Rules, section 6; in UTF-16 code units. */
export const maxOrderingKeyLength = 255;

/** Whether an event may have this ordering key. */
export const isOrderingKey = (text: string): boolean =>
  text.length > 0 && text.length <= maxOrderingKeyLength && isPlain(text);

/**
 * How deliveries to an ordered webhook wait for each other (rules, section 14). Those with one ordering key form a line, in
 * which one at a time is due:
 *
 *   accepted, or begun by a replay
 *      ├──nobody of its line is PENDING──▶ head: due like any other ──retry──▶ head
 *      └──somebody is──▶ held back: due at no time
 *
 *   the head ends, goes, or leaves the line ──▶ of those that are held back, that of the oldest event is the head, due at once
 *   held back, and the webhook is not ordered any more ──▶ leaves the line, due at once
 *
 * So a delivery that is held back has a head before it, and a backend releases the next one where it records the head's end.
 */
export interface PlaceInLine {
  /** Identifies the line among those of the webhook; null: it is in none. */
  readonly orderHash: number | null;
  readonly isHeldBack: boolean;
}

/** The key that puts deliveries of an event to a webhook in a line; null: each goes by itself. */
export const lineOf = ({ ordered }: Pick<WebhookSettings, "ordered">, orderingKey: string | null): string | null =>
  ordered ? orderingKey : null;

/** The place of a record that joins a line, or none. @param hasHead whether another record is the head of a line */
export const join = (orderHash: number | null, hasHead: (orderHash: number) => boolean): PlaceInLine => ({
  orderHash,
  isHeldBack: orderHash !== null && hasHead(orderHash),
});

/**
 * The place of a record whose next run a replay begins: in the line that the webhook's settings give now, or where it was
 * if that is the same line or if a process has it in hand (`isOwned`). `leaves`: the line that it was the head of, and no
 * longer is.
 */
export function rejoin(
  found: PlaceInLine & { readonly state: DeliveryState; readonly isOwned: boolean },
  orderHash: number | null,
  hasHead: (orderHash: number) => boolean,
): PlaceInLine & { readonly leaves: number | null } {
  const isWaiting = found.state === "PENDING";
  if (isWaiting && (found.isOwned || found.orderHash === orderHash)) {
    return { orderHash: found.orderHash, isHeldBack: found.isHeldBack, leaves: null };
  }
  return { ...join(orderHash, hasHead), leaves: isWaiting && !found.isHeldBack ? found.orderHash : null };
}
