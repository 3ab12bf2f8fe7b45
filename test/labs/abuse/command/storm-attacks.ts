import { startReceiver } from "../../bench/receiver.ts";
import { type Attack, ask, call, inParallel } from "./attack.ts";

const replayingAccounts = 10;
const eventsOfEach = 1_000;

export const stormAttacks: readonly Attack[] = [
  {
    name: "replay-storm",
    load: `${replayingAccounts} accounts of ${eventsOfEach} events each ask over 32 connections for replays of one event and of all`,
    accounts: replayingAccounts,
    seconds: 30,
    expected: [202, 429],
    growthBytes: 250e6,
    growthReason: "ten replays run at once, with at most a few hundred deliveries of each in memory",
    async run(target, tally, isOver) {
      const receiver = startReceiver();
      const ids: string[] = [];
      for (const { apiKey, session } of target.accounts) {
        await ask(target, "PUT", "/v1/tenants/webhooks", session, [
          { webhook_url: `http://127.0.0.1:${receiver.port}/hook/00` },
        ]);
        const events = Array.from({ length: eventsOfEach }, (_, n) => ({ payload: { n, filler: "x".repeat(500) } }));
        const { eventIds } = await ask<{ eventIds: string[] }>(target, "POST", "/v1/ingest/batch", apiKey, { events });
        ids.push(eventIds[0] ?? "");
      }
      await inParallel(32, isOver, async (n) => {
        const at = n % replayingAccounts;
        const token = target.accounts[at]?.session ?? "";
        const isSingle = Math.floor(n / replayingAccounts) % 2 === 0;
        const body = JSON.stringify({ replayGroupId: `storm ${n}`, ...(isSingle && { eventId: ids[at] }) });
        await call(target, tally, "POST", `/v1/events/replays/${isSingle ? "single" : "all"}`, { token, body });
      });
      receiver.close();
    },
  },
  {
    name: "rotations",
    load: "16 connections rotate API key, signing key and secret of one account, and list all three",
    accounts: 1,
    expected: [200, 201, 429],
    growthBytes: 150e6,
    growthReason: "1,000 API keys, 100 signing keys and 2 secrets at most, 16 times read at once",
    async run(target, tally, isOver) {
      const { id, session: token } = target.accounts[0] ?? { id: "", session: "" };
      const paths = ["api-keys/rotate", "signing-keys/rotate", "signing-secret/rotate"];
      const lists = ["api-keys", `${id}/jwks.json`, "signing-secret"];
      await inParallel(16, isOver, async (n) => {
        const [path, list] = [paths[n % 3] ?? "", lists[n % 3] ?? ""];
        const body = path.startsWith("signing-keys") ? '{"activate_after_seconds":0}' : "{}";
        await call(target, tally, "POST", `/v1/tenants/${path}`, { token, body });
        if (n % 10 < 3) await call(target, tally, "GET", `/v1/tenants/${list}`, { token });
      });
    },
  },
];
