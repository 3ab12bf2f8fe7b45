import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startNameServer } from "../../support/name-server.ts";
import { endWithUs } from "./cleanup.ts";
import { nowUs, receiverPath } from "./event.ts";
import type { Ledger } from "./ledger.ts";
import { type Meter, startMeter } from "./meter.ts";
import type { Receiver } from "./receiver.ts";

export const httpsPayloadBytes = 1_000;

/** Labels of a network's own: public names would have to be someone's. */
export const hostName = (host: number) => `receiver-${host}.hooks.internal`;

/** The first message of the process of the receivers. */
export interface ReceiverReady {
  ports: number[];
  /** PEM. */
  ca: string;
}

const numbersOfDelivery = 6;

/** HTTPS hosts with names, ports and certificates of their own, in another process, and a name server that knows them. */
export interface HttpsHosts extends Pick<Receiver, "attach"> {
  /** The webhook of each host. */
  readonly urls: readonly string[];
  /** Settings with which a server resolves, trusts and may reach them. */
  readonly env: Readonly<Record<string, string>>;
  /** Of the receivers' process. */
  readonly meter: Meter;
  stop(): Promise<void>;
}

/** @param folder where the certificate of the authority is put */
export async function startHttpsHosts(hosts: number, folder: string): Promise<HttpsHosts> {
  let ledger: Ledger | undefined;
  let notify = () => {};
  const ready = Promise.withResolvers<ReceiverReady>();

  function note(deliveries: Float64Array) {
    const atUs = nowUs();
    for (let i = 0; i < deliveries.length; i += numbersOfDelivery) {
      const [run = 0, tenant = 0, seq = 0, dueUs = 0, exact = 0, place = 0] = deliveries.subarray(i);
      ledger?.noteReceived({ run, tenant, seq, dueUs, exact: exact === 1 }, place, atUs);
    }
    notify();
  }

  const child = Bun.spawn([process.execPath, join(import.meta.dir, "https-receiver.ts"), String(hosts)], {
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
    serialization: "advanced",
    ipc(message: ReceiverReady | Float64Array) {
      if (message instanceof Float64Array) note(message);
      else ready.resolve(message);
    },
  });
  endWithUs(child);
  void child.exited.then((code) => ready.reject(new Error(`The receivers did not start: ${code}.`)));
  const { ports, ca } = await ready.promise;

  const caFile = join(folder, "authority.pem");
  writeFileSync(caFile, ca);
  const names = await startNameServer((_, type) => (type === "A" ? ["127.0.0.1"] : []));
  const meter = startMeter(child.pid);
  return {
    urls: ports.map((port, host) => `https://${hostName(host)}:${port}${receiverPath(host)}`),
    env: {
      POSTRIDER_ALLOW_TARGETS: "127.0.0.0/8",
      POSTRIDER_DNS_SERVERS: names.address,
      POSTRIDER_EXTRA_CA_FILE: caFile,
    },
    meter,
    attach(to, onReceived) {
      ledger = to;
      notify = onReceived;
    },
    async stop() {
      meter.stop();
      names.close();
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
