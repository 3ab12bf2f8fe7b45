import { type Clock, sleep } from "../../../lib/clock.ts";
import type { Random } from "../../../lib/random.ts";
import { openAccount } from "../rig/account.ts";
import { connect } from "../rig/connection.ts";
import type { Ledger } from "../rig/ledger.ts";
import { createPayload } from "../rig/payload.ts";
import type { Switchboard } from "../rig/switchboard.ts";
import { writeIngestRequest } from "../rig/traffic.ts";
import { apiOf, type Nodes, type TestNode } from "./nodes.ts";
import { isExcused, type Outages } from "./outages.ts";

/** By then, an attempt that began before the answer has been read. */
const readByMs = 500;
const batch = 20;
const mostBatches = 50;
const betweenBatchesMs = 50;
const longestBeforeMs = 2_000;

export interface RemovalOptions {
  ledger: Ledger;
  switchboard: Switchboard;
  outages: Pick<Outages, "excuses">;
  random: Random;
  clock: Clock;
}

/**
 * Sends an account's events to all nodes while removing its webhook through one of them: once the removal is answered, nothing
 * may arrive any more.
 * @returns whether the removal was answered; a mishap may have prevented it
 */
export async function watchRemoval(
  nodes: Nodes,
  { ledger, switchboard, outages, random, clock }: RemovalOptions,
): Promise<boolean> {
  const pick = () => random.pick(nodes.listening() as [TestNode, ...TestNode[]]);
  let isOver = false;
  try {
    const hooks = switchboard.newHooks(["slow"]);
    const { operatorToken } = nodes;
    const account = await openAccount(apiOf(pick()), { hooks, receiverUrl: switchboard.url, operatorToken });
    switchboard.connect(account, ledger);

    const send = async () => {
      for (let n = 0; n < mostBatches && !isOver; n++) {
        const payloads = Array.from({ length: batch }, (_, i) => createPayload(random, ledger.figures.sent + i + 1));
        const request = ledger.add(account, payloads, writeIngestRequest(account, payloads, true, null), null);
        const connection = await connect(pick().port ?? 0);
        await connection?.send(request.bytes);
        connection?.close();
        await sleep(clock, betweenBatchesMs);
      }
    };
    const sending = send();
    try {
      await sleep(clock, random.between(0, longestBeforeMs));
      await apiOf(pick()).send("PUT", "/v1/tenants/webhooks", 200, { token: account.session, body: [] });
      await sleep(clock, readByMs);
      for (const hook of hooks) switchboard.remove(hook);
      return true;
    } finally {
      isOver = true;
      await sending;
    }
  } catch (error) {
    if (!isExcused(error, outages)) ledger.fault(String(error));
    return false;
  }
}
