import type { Clock } from "../../../lib/clock.ts";
import { fork, type Random } from "../../../lib/random.ts";
import { type Account, type Api, type Manner, openAccount } from "../rig/account.ts";
import { auditAccount, countIn, type Ended, whenSettled } from "../rig/audit.ts";
import { connect } from "../rig/connection.ts";
import { type Message, statusIn } from "../rig/http-message.ts";
import type { Ledger, SentRequest } from "../rig/ledger.ts";
import { createPayload } from "../rig/payload.ts";
import type { Switchboard } from "../rig/switchboard.ts";
import { createTraffic, eventIdsIn, type Traffic, writeIngestRequest } from "../rig/traffic.ts";
import type { Outages } from "./outages.ts";
import { createReplayDriver, type ReplayDriver } from "./replays.ts";

/** Accounts that live for some cycles, until everything has ended and the books are compared. */
export interface Round {
  readonly accounts: readonly Account[];
  readonly ledger: Ledger;
  readonly traffic: Traffic;
  readonly replays: ReplayDriver;
}

/** Who takes part in a round. */
export interface Cast {
  readonly accounts: number;
  readonly webhooks: number;
  readonly clients: number;
}

/** The accounts of a round. The last one's history is delivered again and again. */
const roles: readonly { manners: readonly Manner[]; clients: number; batches: boolean }[] = [
  { manners: ["steady"], clients: 5, batches: true },
  { manners: ["steady", "unsteady", "refusing"], clients: 5, batches: true },
  { manners: ["steady", "unsteady", "slow"], clients: 3, batches: false },
  { manners: ["steady"], clients: 1, batches: false },
];

export const cast: Cast = {
  accounts: roles.length,
  webhooks: roles.flatMap(({ manners }) => manners).length,
  clients: roles.reduce((sum, { clients }) => sum + clients, 0),
};

/**
 * Events of the account with the replays, sent before the first crash: so many that queueing them takes a while, during which
 * kills occur. Sent in requests of a size that a request may have.
 */
const history = { requests: 4, events: 500 } as const;

/** The server on which a round begins. */
export interface Beginning {
  readonly api: Api;
  readonly port: number;
  readonly operatorToken: string;
  readonly ledger: Ledger;
  readonly switchboard: Switchboard;
  readonly random: Random;
  /** Acknowledged deliveries of an account that may be on their way before its clients wait. */
  readonly window: number;
  readonly outages: Pick<Outages, "excuses">;
}

export async function openRound(beginning: Beginning): Promise<Round> {
  const { api, port, operatorToken, ledger, switchboard, random, window, outages } = beginning;
  const accounts: Account[] = [];
  for (const { manners } of roles) {
    const hooks = switchboard.newHooks(manners);
    const account = await openAccount(api, { hooks, receiverUrl: switchboard.url, operatorToken });
    switchboard.connect(account, ledger);
    accounts.push(account);
  }
  await sendHistory(port, ledger, accounts.at(-1) as Account, random);
  const clients = accounts.flatMap((account, i) => {
    const { clients: count, batches } = roles[i] ?? { clients: 0, batches: false };
    return Array.from({ length: count }, () => ({ account, batches }));
  });
  const onRefusal = ({ account }: SentRequest, answer: Message) => {
    // Whether it was stored is judged at the end.
    if (outages.excuses(statusIn(answer))) return;
    ledger.fault(`an event of ${account.id} was refused with ${answer.startLine}: ${answer.body}`);
  };
  const traffic = createTraffic({ ledger, clients, random: fork(random), window, onRefusal });
  const replays = createReplayDriver(accounts.at(-1) as Account, { ledger, random: fork(random), outages });
  return { accounts, ledger, traffic, replays };
}

async function sendHistory(port: number, ledger: Ledger, account: Account, random: Random): Promise<void> {
  const connection = await connect(port);
  for (let n = 0; n < history.requests; n++) {
    const payloads = Array.from({ length: history.events }, (_, i) =>
      createPayload(random, ledger.figures.sent + i + 1),
    );
    const request = ledger.add(account, payloads, writeIngestRequest(account, payloads, true, null), null);
    const answer = await connection?.send(request.bytes);
    if (!answer || statusIn(answer) !== 202) throw new Error(`a batch was answered with ${answer?.startLine}`);
    ledger.acknowledged(request, eventIdsIn(answer));
  }
  connection?.close();
}

/** Accounts of earlier rounds, and their final records. */
export interface Settled {
  readonly account: Account;
  readonly ended: Ended;
}

/** What the audits of all rounds count. */
export interface AuditFigures {
  /** Events and event records that exist in the end. */
  stored: number;
  records: number;
  /** Records that end as FAILED, as they must, because their webhook refuses everything. */
  failed: number;
  /** Attempts that arrived but are in no record: they were under way during a crash. */
  unrecordedAttempts: number;
  /** Attempts made late by a server's pause: another one of the same delivery is in the record as well. */
  lateAttempts: number;
}

/** Lets everything come to an end, and compares the books. */
export async function auditRound(
  { accounts, ledger, traffic, replays }: Round,
  { api, port, clock, hooksUrl }: { api: Api; port: number; clock: Clock; hooksUrl: string },
  figures: AuditFigures,
): Promise<Settled[]> {
  await traffic.repeat(port);
  const left = await whenSettled(clock, ledger, async () => {
    const pending = await Promise.all(accounts.map((account) => countIn(api, "PENDING", account)));
    return pending.reduce((sum, count) => sum + count, await replays.unfinished(api));
  });
  if (left > 0) ledger.fault(`${left} deliveries and replays are unfinished and no longer progress`);
  const settled: Settled[] = [];
  for (const account of accounts) {
    const audited = await auditAccount(api, account, ledger, hooksUrl);
    settled.push({ account, ended: audited.ended });
    figures.stored += audited.eventIds.length;
    figures.records += audited.ended.DELIVERED + audited.ended.FAILED;
    figures.failed += audited.ended.FAILED;
    figures.unrecordedAttempts += audited.unrecordedAttempts;
    figures.lateAttempts += audited.lateAttempts;
    if (account === accounts.at(-1)) await replays.audit(api, audited.eventIds);
  }
  return settled;
}
