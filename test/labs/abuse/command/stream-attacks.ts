import { connect, type Socket } from "node:net";
import { headOf, statusOf } from "../../../support/raw-peer.ts";
import { type Attack, call, inParallel } from "./attack.ts";
import { type Account, type AttackTarget, count, type Tally } from "./target.ts";

const streams = 1_000;
/** A tenth of the readers takes nothing from the start. */
const stalledEach = 10;
/** Beyond the limit of one account by ten. */
const ofFirstAccount = 60;
const label = "x".repeat(60_000);

/** Opens a stream over a connection of its own and counts its status, and its end if that was not ours. */
function openStream({ port }: AttackTarget, account: Account, tally: Tally, stalls: boolean, isOver: () => boolean) {
  return new Promise<Socket>((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.write(`${headOf("GET", "/v1/stream", { Authorization: `Bearer ${account.session}` })}\r\n`);
    });
    let head = "";
    socket.on("data", (bytes) => {
      if (statusOf(head) !== 0) return;
      head += bytes.toString("latin1", 0, 100);
      if (statusOf(head) === 0) return;
      count(tally, statusOf(head));
      if (stalls) socket.pause();
      resolve(socket);
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      if (!isOver() && statusOf(head) !== 429) count(tally, stalls ? "stalled reader cut" : "reader cut");
      resolve(socket);
    });
  });
}

export const streamAttacks: readonly Attack[] = [
  {
    name: "streams",
    load: `${streams} accounts with a stream each, every tenth of which is never read, one account that asks for ${ofFirstAccount}; each gets events, and a tenth replays with labels of 60 KB`,
    accounts: streams,
    seconds: 60,
    expected: [200, 202, 429, "stalled reader cut"],
    growthBytes: 400e6,
    growthReason: "1,000 streams, and 64 MiB of messages that they keep to resume from",
    async run(target, tally, isOver) {
      const { accounts } = target;
      const sockets: Socket[] = [];
      for (const [n, account] of accounts.entries()) {
        sockets.push(await openStream(target, account, tally, n % stalledEach === 1, isOver));
      }
      const [first] = accounts;
      for (let n = 1; first && n < ofFirstAccount; n++)
        sockets.push(await openStream(target, first, tally, false, isOver));
      await inParallel(8, isOver, async (n) => {
        const account = accounts[n % accounts.length];
        if (account === undefined) return;
        const { apiKey, session } = account;
        if (n % stalledEach === 2) {
          const body = JSON.stringify({ replayGroupId: label });
          await call(target, tally, "POST", "/v1/events/replays/failed", { token: session, body });
        } else {
          await call(target, tally, "POST", "/v1/ingest", { token: apiKey, body: '{"payload":{}}' });
        }
      });
      for (const socket of sockets) socket.destroy();
    },
  },
];
