import { buildRequest } from "../delivery/request.ts";
import type { Sender } from "../delivery/sender.ts";
import { masked } from "../domain/webhook-headers.ts";
import type { InboxAddresses } from "./addresses.ts";
import type { Inbox } from "./inbox.ts";

export interface InboxSenderDeps {
  addresses: Pick<InboxAddresses, "isInboxOf">;
  inbox: Inbox;
  network: Sender;
}

/**
 * Hands deliveries for the account's own inbox over within the process, never over a socket (rules, section 9), and all
 * others to the network, which refuses the addresses of this server.
 */
export function createInboxSender({ addresses, inbox, network }: InboxSenderDeps): Sender {
  return {
    send(order, signal) {
      const { delivery, material, headers, now } = order;
      if (!addresses.isInboxOf(delivery.tenantId, delivery.url)) return network.send(order, signal);
      // What the inbox shows is stored as it is, and no response shows the values of these headers.
      return inbox.receive(buildRequest(delivery, material, now, masked(headers)), signal);
    },
    close() {
      inbox.close();
      network.close();
    },
  };
}
