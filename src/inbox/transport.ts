import type { DeliveryRequest } from "../delivery/request.ts";
import type { Transport } from "../delivery/transport.ts";
import type { InboxAddresses } from "./addresses.ts";
import type { Inbox } from "./inbox.ts";

export interface InboxTransportDeps {
  addresses: Pick<InboxAddresses, "isInboxOf">;
  inbox: Inbox;
  network: Transport;
}

/**
 * Hands a delivery to the account's own inbox over inside the process, never over a socket (decisions, section 9), and
 * every other one to the network, which refuses the addresses of this server.
 */
export function createInboxTransport({ addresses, inbox, network }: InboxTransportDeps): Transport<DeliveryRequest> {
  return {
    send: (request, signal) =>
      addresses.isInboxOf(request.delivery.tenantId, request.url)
        ? inbox.receive(request, signal)
        : network.send(request, signal),
    close() {
      inbox.close();
      network.close();
    },
  };
}
