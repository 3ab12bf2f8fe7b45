import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RecordBody } from "../../../support/api-server.ts";
import { createAuthority } from "../../../support/certificates.ts";
import { type HostileReceiver, head, startHostileReceiver } from "../../../support/hostile-receiver.ts";
import { type NameServer, startNameServer, type Zone } from "../../../support/name-server.ts";
import { saveWebhooks } from "../../../support/saved-webhooks.ts";
import { startTestApp, type TestAccount, type TestApp } from "../../../support/test-app.ts";
import { plainly } from "../ranges.ts";

/**
 * An internet of our own, for a network in which every address there is leads to this machine (`internet.test.ts`): a
 * listener on all addresses and several ports, which is the canary where no delivery may go and the receiver where one
 * may; a name server that says what a test wants; and the real server in public mode, with nothing in it replaced.
 */
export interface World {
  server: TestApp;
  account: TestAccount;
  readonly names: NameServer;
  /** What the names resolve to; of an unknown one it says NXDOMAIN. */
  zone: Zone;
  /** How a receiver answers; by default 200, and the connection is kept. */
  answer: (peer: net.Socket) => void;
  /** `<address> <port>` of every connection that was made since the last call, in the order they came. */
  takeDialled(): Promise<string[]>;
  /**
   * Delivers one event to all of these webhooks, which were saved before any rule was there, and resolves with their
   * records once nothing is queued.
   */
  deliver(urls: readonly string[]): Promise<Map<string, RecordBody>>;
  /** Starts the server again on its data, with other settings and another account. */
  restart(options: { env: Record<string, string> }): Promise<void>;
  stop(): Promise<void>;
}

/** Where the listeners are; 443 and 8443 speak TLS. */
export const tlsPorts = [443, 8443] as const;
export const plainPorts = [80, 9000] as const;

/** We dial it ourselves: connections to one port are taken in their order, so those made before are noted by then. */
const fence = "127.99.99.99";

export const keptAlive = head(200, "Content-Length: 0");

export interface WorldOptions {
  env?: Record<string, string>;
  /** Names and addresses that the receivers' certificate is for. */
  hosts?: readonly string[];
}

export async function startWorld({ env = {}, hosts = [] }: WorldOptions = {}): Promise<World> {
  const authority = createAuthority("Test authority");
  const certificate = authority.issue({ hosts: ["receiver.example", ...hosts] });
  const folder = mkdtempSync(join(tmpdir(), "postrider-ssrf-"));
  const caFile = join(folder, "ca.pem");
  writeFileSync(caFile, authority.cert);

  let dialled: string[] = [];
  let onDialled = () => {};
  const listen = (port: number, tls: typeof certificate | undefined) =>
    startHostileReceiver({
      host: "::", // and IPv4 with it
      port,
      tls,
      onDialled(address) {
        dialled.push(`${plainly(address.replace(/^::ffff:(?=[\d.]+$)/, ""))} ${port}`);
        onDialled();
      },
      onRequest: (peer) => world.answer(peer),
    });
  const listeners: HostileReceiver[] = [];
  for (const port of tlsPorts) listeners.push(await listen(port, certificate));
  for (const port of plainPorts) listeners.push(await listen(port, undefined));

  const names = await startNameServer((...question) => world.zone(...question));
  async function startServer(own: Record<string, string>, dataDir?: string) {
    const server = await startTestApp({
      env: {
        POSTRIDER_PUBLIC_URL: "https://relay.example.com",
        POSTRIDER_DNS_SERVERS: names.address,
        POSTRIDER_EXTRA_CA_FILE: caFile,
        // One attempt and no other: what a record says is what happened to it.
        POSTRIDER_RETRY_SCHEDULE: "none",
        ...own,
      },
      ...(dataDir !== undefined && { dataDir }),
    });
    return { server, account: await makeAccount(server) };
  }

  const world: World = {
    ...(await startServer(env)),
    names,
    zone: () => "NXDOMAIN",
    answer: (peer) => void peer.write(keptAlive),
    async takeDialled() {
      const fences = [...tlsPorts, ...plainPorts].map((port) => `${fence} ${port}`);
      const sockets = [...tlsPorts, ...plainPorts].map((port) => net.connect(port, fence));
      await new Promise<void>((resolve) => {
        onDialled = () => fences.every((one) => dialled.includes(one)) && resolve();
      });
      for (const socket of sockets) socket.destroy();
      const taken = dialled.filter((one) => !fences.includes(one));
      dialled = [];
      return taken;
    },
    async deliver(urls) {
      const { server, account } = world;
      await saveWebhooks(server, account, urls);
      const { body } = await account.ingest({});
      await server.app.whenIdle();
      const { body: records } = await account.get(`/v1/events/${body.eventId}`);
      return new Map((records as RecordBody[]).map((record) => [record.targetWebhook, record]));
    },
    async restart(options) {
      await world.server.stop({ keepData: true });
      Object.assign(world, await startServer(options.env, world.server.dataDir));
    },
    async stop() {
      await world.server.stop();
      names.close();
      for (const listener of listeners) listener.close();
      rmSync(folder, { recursive: true });
    },
  };
  return world;
}

/** By the operator, because sign-up is closed where inside targets are allowed. */
async function makeAccount(server: TestApp): Promise<TestAccount> {
  const made = await server.request("POST", "/operator/tenants", { token: server.operatorToken, body: {} });
  return server.signIn(made.body.tenant_id, made.body.password);
}
