import { plainText } from "./table.ts";

/** How webhooks read on a terminal. */

/** A query may hold secrets, and is long. A webhook's URL contains no spaces, so it ends where they begin. */
const withoutQueries = (text: string): string => text.replace(/(https?:\/\/[^\s?]*)\?\S*/gi, "$1");

/** A webhook's URL, or its id. */
export const webhookWords = (webhook: string): string =>
  webhook === "" ? "no webhook" : plainText(withoutQueries(webhook));

/** Where a record goes: there may have been a webhook that does not take the event's type. */
export const targetWords = ({ state, targetWebhook }: { state: string; targetWebhook: string }): string =>
  targetWebhook === "" && state === "SKIPPED" ? "no webhook takes this type" : webhookWords(targetWebhook);

/** Why a delivery failed, in the server's words, with URLs as `webhookWords` shows them. */
export const reasonWords = (reason: string): string => plainText(withoutQueries(reason));
