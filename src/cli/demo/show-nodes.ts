import { randomBytes } from "node:crypto";
import { systemClock as clock } from "../../lib/clock.ts";
import { formatDuration } from "../../lib/duration.ts";
import { messageOf } from "../../lib/error-message.ts";
import { type BorrowedDatabase, borrowDatabase } from "../../store/open.ts";
import { exitCode, type Io } from "../io.ts";
import type { Narrator } from "./narrator.ts";
import { createDemoNodes, type DemoNode, type DemoNodes } from "./nodes.ts";
import { nodesStatusFor, tellNodesStory } from "./nodes-story.ts";
import { type DemoReceiver, startDemoReceiver } from "./receiver.ts";

export interface ShowNodesOptions {
  /** URL of an empty database. */
  url: string;
  count: number;
  /** For everything the servers keep on this machine. */
  folder: string;
  io: Io;
  narrator: Narrator;
  /** Resolves with the exit code when the demo is asked to end. */
  interrupted: Promise<number>;
}

/** @returns the exit code @throws StartupError with what to do when the database cannot be used */
export async function showNodes({ url, count, folder, io, narrator, interrupted }: ShowNodesOptions): Promise<number> {
  const startedAt = clock.monotonicMs();
  const database = await borrowDatabase({ url, clock, setting: "--database-url" });
  const masterKey = randomBytes(32);
  const nodes = createDemoNodes({ folder, databaseUrl: url, masterKey, clock });
  const receiver = startDemoReceiver(nodesStatusFor);

  async function show(): Promise<number> {
    try {
      const sum = await tell({ database, nodes, receiver, narrator, count });
      narrator.end(true, `Every check passed: ${sum}, in ${formatDuration(clock.monotonicMs() - startedAt)}.`);
      return exitCode.ok;
    } catch (error) {
      narrator.end(false, `A check failed: ${messageOf(error)}`);
      return exitCode.failed;
    }
  }

  try {
    return await Promise.race([show(), interrupted]);
  } finally {
    io.progress("");
    await nodes.kill();
    await receiver.stop();
    io.out(`  ${await giveBack(database, masterKey)}`);
  }
}

interface Play {
  database: BorrowedDatabase;
  nodes: DemoNodes;
  receiver: DemoReceiver;
  narrator: Narrator;
  count: number;
}

async function tell({ database, nodes, receiver, narrator, count }: Play): Promise<string> {
  narrator.chapter(`${count} servers on one PostgreSQL`);
  await narrator.step("Database", () => `${database.place}, empty`);
  const all: DemoNode[] = [];
  for (let nth = 1; nth <= count; nth += 1) {
    const { node } = await narrator.step("Server", async () => {
      const node = await nodes.start(`relay-${nth}`);
      return { node, said: `${node.name} at ${node.url}, a process of its own` };
    });
    all.push(node);
  }
  const sum = await tellNodesStory({ nodes: all, receiver, narrator, clock });
  await nodes.stop();
  const [fault] = nodes.faults.told;
  if (fault !== undefined) throw new Error(fault);
  return sum;
}

/** @returns what remains of the demo, in words */
async function giveBack(database: BorrowedDatabase, masterKey: Uint8Array): Promise<string> {
  const end = "The demo's servers have ended, and their folders are removed.";
  const isEmpty = await database.giveBack(masterKey).catch(() => false);
  return isEmpty
    ? `${end} The database is empty again. To run your own: docs/scaling.md`
    : `${end} Their tables are still in the database at ${database.place}. Try: drop that database.`;
}
