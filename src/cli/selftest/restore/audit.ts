import type { Account, Api } from "../rig/account.ts";
import { listRecords } from "../rig/audit.ts";
import { type Ledger, tallyKey } from "../rig/ledger.ts";
import { refusal } from "../rig/switchboard.ts";

export interface RestoredBooks {
  readonly api: Api;
  readonly accounts: readonly Account[];
  readonly ledger: Ledger;
  readonly hooksUrl: string;
  /** Ids of the events acknowledged before the backup began. */
  readonly owed: ReadonlySet<string>;
}

/**
 * Checks a restored server against the books once everything has ended:
 * - what was acknowledged before the backup began is there, and of each other request all or nothing;
 * - nothing is there that was not sent, byte for byte, and each event has one record for each webhook, in the one state that
 *   follows from the answers the webhook has given.
 * What came after the backup is gone, and what was pending in it may arrive twice.
 */
export async function auditRestored({ api, accounts, ledger, hooksUrl, owed }: RestoredBooks) {
  let events = 0;
  let records = 0;
  const stored = new Set<string>();
  for (const account of accounts) {
    const listed = await listRecords(api, account);
    records += listed.length;
    const byEvent = Map.groupBy(listed, ({ eventId }) => eventId);
    events += byEvent.size;
    const expected = account.hooks.map(({ path }) => hooksUrl + path).sort();
    const manners = new Map(account.hooks.map(({ path, manner }) => [hooksUrl + path, manner]));
    for (const [eventId, own] of byEvent) {
      stored.add(eventId);
      const targets = own.map(({ targetWebhook }) => targetWebhook).sort();
      if (!Bun.deepEquals(targets, expected)) ledger.fault(`${eventId} has records for ${targets.join(", ")}`);
      for (const { state, targetWebhook, payload, statusCode, errorReason } of own) {
        const isRefused = manners.get(targetWebhook) === "refusing";
        const isRight = isRefused ? state === "FAILED" && statusCode === refusal : state === "DELIVERED";
        if (!isRight) ledger.fault(`${eventId} is ${state} for ${targetWebhook} in the end (${errorReason})`);
        const tally = ledger.tallies.get(tallyKey(targetWebhook.slice(hooksUrl.length), eventId));
        if (!tally || tally.concluded.size === 0) ledger.fault(`LOST: ${eventId} is ${state} and never arrived`);
        if (ledger.eventIdOf(Buffer.from(payload)) !== eventId) {
          ledger.fault(`${eventId} has a payload of ${payload.length} characters that was not sent as this event`);
        }
      }
    }
  }
  const lost = [...owed].filter((eventId) => !stored.has(eventId));
  if (lost.length > 0) {
    ledger.fault(
      `LOST: ${lost.length} events were acknowledged before the backup began and are not in it: ${lost.slice(0, 3).join(", ")}`,
    );
  }
  for (const { events: sent } of ledger.requests) {
    const found = sent.filter(({ eventId }) => eventId !== null && stored.has(eventId)).length;
    if (found > 0 && found < sent.length) ledger.fault(`${found} events of a batch of ${sent.length} were restored`);
  }
  return { events, records };
}
