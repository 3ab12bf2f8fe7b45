import { createAuthority } from "../../support/certificates.ts";
import { hostName, httpsPayloadBytes, type ReceiverReady } from "./https-hosts.ts";
import { type Peer, receiveDeliveries } from "./receiver.ts";

/**
 * The HTTPS receivers: one listener for each host, each with a certificate of its own. A process of its own, because the
 * other ends of TLS cost as much as ours.
 *
 * Usage: bun https-receiver.ts <hosts>, as a child with IPC. First it says its ports and whom to trust, then what it
 * received: six numbers for each delivery, read in `https-hosts.ts`.
 */
const hosts = Number(process.argv[2]);
const authority = createAuthority("Postrider bench");
const nowhere = -1;

let deliveries: number[] = [];
let isTelling = false;

/** Once in a turn of the event loop: a message costs more than a delivery. */
function tellSoon(): void {
  if (isTelling) return;
  isTelling = true;
  setImmediate(() => {
    isTelling = false;
    process.send?.(Float64Array.from(deliveries));
    deliveries = [];
  });
}

const ports = Array.from({ length: hosts }, (_, host) => {
  const listener = Bun.listen<Peer>({
    hostname: "127.0.0.1",
    port: 0,
    tls: authority.issue({ hosts: [hostName(host)] }),
    socket: receiveDeliveries({
      size: httpsPayloadBytes,
      take(event, tenantOfPath) {
        // At another host's listener it is as wrong as under another tenant's path.
        const place = tenantOfPath === host ? host : nowhere;
        if (event === null) deliveries.push(0, 0, 0, 0, 0, place);
        else deliveries.push(event.run, event.tenant, event.seq, event.dueUs, Number(event.exact), place);
      },
      taken: tellSoon,
    }),
  });
  return listener.port;
});

process.send?.({ ports, ca: authority.cert } satisfies ReceiverReady);
process.on("disconnect", () => process.exit(0));
