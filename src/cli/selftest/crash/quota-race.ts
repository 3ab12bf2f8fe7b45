import { type Clock, sleep } from "../../../lib/clock.ts";
import type { Random } from "../../../lib/random.ts";
import { type Account, type Api, openAccount } from "../rig/account.ts";
import { connect } from "../rig/connection.ts";
import { statusIn } from "../rig/http-message.ts";
import type { Ledger } from "../rig/ledger.ts";
import { writeIngestRequest } from "../rig/traffic.ts";
import { apiOf, type Nodes, type TestNode } from "./nodes.ts";
import { isExcused, type Outages } from "./outages.ts";

/** Sends an account's events through all nodes concurrently, more than its plan allows. */
export interface QuotaRace {
  /** Checks, through a node that listens, that what was accepted matches the quota to the event. */
  end(api: Api): Promise<{ accepted: number; unanswered: number }>;
}

/** The quota of the "free" plan. */
const quota = 10_000;
/** How many events are left for the race; the rest is sent up front, in batches of the size that a request may have. */
const raced = 400;
const batch = 400;
const racers = 6;
const largestRequest = 3;
const pauseMs = 100;
/** After this many refusals of a single event in a row, by any nodes, the quota is used up. */
const refusalsAtEnd = 3;
const refused = 429;
const stored = 202;
const payload = Buffer.from("{}");

export interface QuotaRaceOptions {
  ledger: Ledger;
  outages: Pick<Outages, "excuses">;
  random: Random;
  clock: Clock;
}

export function runQuotaRace(nodes: Nodes, { ledger, outages, random, clock }: QuotaRaceOptions): QuotaRace {
  const pick = () => random.pick(nodes.listening() as [TestNode, ...TestNode[]]);
  let accepted = 0;
  /** Events in requests that got no answer, or one that says nothing: stored or not. */
  let unanswered = 0;
  const account = open();

  /** Through the first node that lives long enough. */
  async function open(): Promise<Account> {
    const wish = { hooks: [], receiverUrl: "", operatorToken: nodes.operatorToken, tier: "free" } as const;
    for (;;) {
      try {
        return await openAccount(apiOf(pick()), wish);
      } catch (error) {
        if (!isExcused(error, outages)) throw error;
        await sleep(clock, pauseMs);
      }
    }
  }

  /** @returns the status; null when there was no answer */
  async function send(count: number): Promise<number | null> {
    const connection = await connect(pick().port ?? 0);
    if (connection === null) return 0;
    const payloads = Array.from({ length: count }, () => payload);
    const answer = await connection.send(writeIngestRequest(await account, payloads, count > 1, null));
    connection.close();
    const status = answer && statusIn(answer);
    if (status === stored) accepted += count;
    else if (status !== refused) unanswered += count;
    return status;
  }

  async function race(): Promise<void> {
    for (let refusals = 0; refusals < refusalsAtEnd; ) {
      const count = refusals > 0 ? 1 : random.between(1, largestRequest + 1);
      const status = await send(count);
      if (status === refused) refusals += 1;
      else if (status === stored) refusals = 0;
      await sleep(clock, pauseMs);
    }
  }

  async function run(): Promise<void> {
    while (accepted < quota - raced) {
      const status = await send(batch);
      if (status === refused) break;
      // Asking a node that has lost its database does not bring it back any sooner.
      if (status !== stored) await sleep(clock, pauseMs);
    }
    await Promise.all(Array.from({ length: racers }, race));
  }

  const ended = run();
  // It is awaited at the end, which may never come.
  ended.catch(() => {});
  return {
    async end(api) {
      await ended;
      const { session: token } = await account;
      const me = await api.send<{ events_this_month: number }>("GET", "/v1/tenants/me", 200, { token });
      const found = me.events_this_month;
      if (found !== quota || accepted > found || accepted + unanswered < found) {
        ledger.fault(
          `an account with a quota of ${quota} events has ${found}; ${accepted} were acknowledged, ${unanswered} had no answer`,
        );
      }
      return { accepted, unanswered };
    },
  };
}
