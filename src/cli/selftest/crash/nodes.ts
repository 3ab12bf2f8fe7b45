import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../lib/clock.ts";
import { operatorTokenFile } from "../../../secrets.ts";
import { type Api, createApi } from "../rig/account.ts";
import type { Faults } from "../rig/ledger.ts";
import { type Server, startServer } from "../rig/server.ts";

/** Servers that share a database, each with its own folder. */
export interface Nodes {
  readonly all: readonly TestNode[];
  /** Nodes that listen and are not frozen. */
  listening(): TestNode[];
  readonly operatorToken: string;
  /** Kills all. */
  end(): Promise<void>;
}

export interface TestNode {
  readonly name: string;
  /** Null while it does not listen. */
  readonly port: number | null;
  readonly isFrozen: boolean;
  /** Resolves with the time it took until it listened. */
  start(): Promise<number>;
  /** @returns the port it had */
  kill(): Promise<number | null>;
  freeze(): void;
  thaw(): void;
  /** Resolves with its exit code. */
  stop(): Promise<number | null>;
}

export interface NodesOptions {
  readonly count: number;
  readonly folder: string;
  readonly databaseUrl: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly faults: Faults;
  readonly program?: readonly string[];
  /** See `ServerOptions`. */
  isExpected(line: string): boolean;
}

export function createNodes({ count, folder, databaseUrl, settings, ...rest }: NodesOptions): Nodes {
  const masterKeyFile = join(folder, "master-key");
  writeFileSync(masterKeyFile, `${randomBytes(32).toString("hex")}\n`, { mode: 0o600 });
  const shared = { ...settings, POSTRIDER_DATABASE_URL: databaseUrl, POSTRIDER_MASTER_KEY_FILE: masterKeyFile };
  const dataDirOf = (index: number) => join(folder, `node-${index + 1}`);

  function createNode(index: number): TestNode {
    let server: Server | null = null;
    let port: number | null = null;
    let isFrozen = false;
    const name = `node-${index + 1}`;
    return {
      name,
      get port() {
        return port;
      },
      get isFrozen() {
        return isFrozen;
      },
      async start() {
        server = startServer({
          dataDir: dataDirOf(index),
          settings: { ...shared, POSTRIDER_NODE_NAME: name },
          ...rest,
        });
        const listening = await server.ready;
        port = listening.port;
        return listening.afterMs;
      },
      async kill() {
        const had = port;
        port = null;
        isFrozen = false;
        await server?.kill();
        return had;
      },
      freeze() {
        isFrozen = true;
        server?.freeze();
      },
      thaw() {
        isFrozen = false;
        server?.thaw();
      },
      async stop() {
        port = null;
        return (await server?.stop()) ?? null;
      },
    };
  }

  const all = Array.from({ length: count }, (_, index) => createNode(index));
  return {
    all,
    listening: () => all.filter(({ port, isFrozen }) => port !== null && !isFrozen),
    get operatorToken() {
      return readFileSync(join(dataDirOf(0), operatorTokenFile), "utf8").trim();
    },
    async end() {
      await Promise.all(all.map((node) => node.kill()));
    },
  };
}

export const apiOf = ({ port }: TestNode): Api => createApi(`http://127.0.0.1:${port}`);
