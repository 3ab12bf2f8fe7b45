import { type Attack, ask, call, inParallel } from "./attack.ts";
import { count } from "./target.ts";

const churningAccounts = 100;
/** As long as a URL may be, nearly. */
const longPath = "x".repeat(1_990);

const events = 500;
/** Of a free account (`POSTRIDER_DELIVERY_RATE`), and what it may send at once. */
const ratePerSecond = 100;
const burst = 1_000;
/** Attempts that were spread out as they left may arrive together. */
const leeway = 50;
/** What is kept of an answer is 4 KiB: the most that an attempt can leave on the disk. */
const answer = `HTTP/1.1 200 OK\r\nContent-Length: 4096\r\n\r\n${"y".repeat(4096)}`;

/** A receiver that answers everything with as much as is kept, and tells each delivery. */
function startGreedyReceiver(onDelivery: () => void) {
  return Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket, chunk) {
        for (let left = chunk.toString("latin1").split("POST /").length - 1; left > 0; left -= 1) {
          onDelivery();
          socket.write(answer);
        }
      },
    },
  });
}

export const meteringAttacks: readonly Attack[] = [
  {
    name: "webhook-churn",
    load: `${churningAccounts} accounts change their webhook to and fro between two URLs of 2,000 characters over 32 connections, and list the events of one every 100th time`,
    accounts: churningAccounts,
    seconds: 30,
    expected: [200, 429],
    growthBytes: 150e6,
    growthReason: "an account has one webhook at any time",
    diskBytes: 40e6,
    diskReason: "the log, and a row for each account; with one for each change it is 70 MB at once, and 1 MB a second",
    async run(target, tally, isOver) {
      await inParallel(32, isOver, async (n) => {
        const token = target.accounts[n % churningAccounts]?.session ?? "";
        const url = `http://127.0.0.1:9000/${longPath}${Math.floor(n / churningAccounts) % 2}`;
        await call(target, tally, "PUT", "/v1/tenants/webhooks", {
          token,
          body: JSON.stringify([{ webhook_url: url }]),
        });
        if (n % 100 === 0) {
          await call(target, tally, "GET", `/v1/events?webhook=${encodeURIComponent(url)}`, { token });
        }
      });
    },
  },
  {
    name: "replay-meter",
    load: `one free account of ${events} events asks over 8 connections for replays of all, of what failed and of one event; its receiver answers with 4 KiB`,
    accounts: 1,
    tier: "free",
    seconds: 40,
    expected: [202, 429],
    growthBytes: 150e6,
    growthReason: "what waits is in the table",
    diskBytes: 60e6,
    diskReason: `${burst} attempts at once, ${ratePerSecond} a second and 4 KiB each, and the log`,
    async run(target, tally, isOver) {
      const { apiKey, session: token } = target.accounts[0] ?? { apiKey: "", session: "" };
      let tokens = burst;
      let at = performance.now();
      const receiver = startGreedyReceiver(() => {
        const now = performance.now();
        tokens = Math.min(burst, tokens + ((now - at) / 1000) * ratePerSecond) - 1;
        at = now;
        if (tokens < -leeway) count(tally, "faster than the plan");
      });
      await ask(target, "PUT", "/v1/tenants/webhooks", token, [
        { webhook_url: `http://127.0.0.1:${receiver.port}/hook` },
      ]);
      const payloads = Array.from({ length: events }, (_, n) => ({ payload: { n } }));
      const { eventIds } = await ask<{ eventIds: string[] }>(target, "POST", "/v1/ingest/batch", apiKey, {
        events: payloads,
      });
      const kinds = ["all", "failed", "single", "single"];
      await inParallel(8, isOver, async (n) => {
        const kind = kinds[n % kinds.length] ?? "all";
        const body = { replayGroupId: `meter ${n}`, ...(kind === "single" && { eventId: eventIds[n % events] }) };
        await call(target, tally, "POST", `/v1/events/replays/${kind}`, { token, body: JSON.stringify(body) });
      });
      receiver.stop(true);
    },
  },
];
