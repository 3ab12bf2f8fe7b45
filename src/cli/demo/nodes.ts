import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../lib/clock.ts";
import { createOperatorClient } from "../operator-client.ts";
import { createFaults, type Faults } from "../selftest/rig/ledger.ts";
import { type Server, startServer } from "../selftest/rig/server.ts";

/** One of several servers on a database: this same program, as a separate process. */
export interface DemoNode {
  readonly name: string;
  readonly url: string;
  /** `kill -9`. */
  kill(): Promise<void>;
  /** The names of the servers on the database, as this one sees them. */
  listed(): Promise<string[]>;
}

export interface DemoNodes {
  /** @throws Error in the server's own words when it does not start */
  start(name: string): Promise<DemoNode>;
  /** Asks the servers still running to end, and waits until they have. */
  stop(): Promise<void>;
  /** Kills the servers still running. */
  kill(): Promise<void>;
  /** Errors that any of them has logged, and exits that nobody asked for. */
  readonly faults: Faults;
}

export interface DemoNodesOptions {
  /** For everything they keep on this machine. */
  readonly folder: string;
  readonly databaseUrl: string;
  readonly masterKey: Uint8Array;
  readonly clock: Clock;
}

export function createDemoNodes({ folder, databaseUrl, masterKey, clock }: DemoNodesOptions): DemoNodes {
  const faults = createFaults();
  const running = new Set<Server>();
  const masterKeyFile = join(folder, "master-key");
  writeFileSync(masterKeyFile, Buffer.from(masterKey).toString("hex"), { mode: 0o600 });
  const settings = { POSTRIDER_DATABASE_URL: databaseUrl, POSTRIDER_MASTER_KEY_FILE: masterKeyFile };

  return {
    faults,
    async start(name) {
      const dataDir = join(folder, name);
      const server = startServer({ dataDir, settings: { ...settings, POSTRIDER_NODE_NAME: name }, clock, faults });
      running.add(server);
      const { port } = await server.ready;
      return {
        name,
        url: `http://127.0.0.1:${port}`,
        async kill() {
          await server.kill();
          running.delete(server);
        },
        async listed() {
          const answer = await createOperatorClient(dataDir).send("GET", "/operator/nodes");
          return (answer as { nodes: { name: string }[] }).nodes.map(({ name }) => name);
        },
      };
    },
    async stop() {
      await Promise.all([...running].map((server) => server.stop()));
      running.clear();
    },
    kill: async () => void (await Promise.all([...running].map((server) => server.kill()))),
  };
}
