import { type Clock, sleep } from "../../../lib/clock.ts";
import type { Random } from "../../../lib/random.ts";
import { type Account, type Api, createApi, type Manner, openAccount } from "../rig/account.ts";
import { auditAccount, countIn, listRecords, whenSettled } from "../rig/audit.ts";
import { type Connection, connect } from "../rig/connection.ts";
import { type Message, statusIn } from "../rig/http-message.ts";
import { createLedger, createLedgerFigures, type Faults, type LedgerFigures, type SentRequest } from "../rig/ledger.ts";
import { createPayload } from "../rig/payload.ts";
import type { Switchboard } from "../rig/switchboard.ts";
import { eventIdsIn, writeIngestRequest } from "../rig/traffic.ts";

export interface DiskFullFigures extends LedgerFigures {
  cycles: number;
  /** Requests answered with 503, including those that filled the disk. */
  refusals: number;
  /** Full disks on which the server was ended, by a kill or cleanly, and restarted. */
  restarts: number;
  /** Events whose only purpose was to fill the disk. */
  filling: number;
  /** Attempts that a webhook had answered but that could not be recorded until there was room, over all cycles. */
  held: number;
  records: number;
  verifiedSignatures: number;
  /** From the moment there was room to the next event that was accepted. */
  resumedMs: number[];
  backend: string;
}

export const createDiskFullFigures = (): DiskFullFigures => ({
  ...createLedgerFigures(),
  cycles: 0,
  refusals: 0,
  restarts: 0,
  filling: 0,
  held: 0,
  records: 0,
  verifiedSignatures: 0,
  resumedMs: [],
  backend: "",
});

/** The disk under the server: it can be filled, and room can be made. */
export interface Disk {
  /** Leaves a little room for events of the account that is returned, which has no webhooks. */
  fillUp(api: Api): Promise<Account>;
  /** Makes room the way an operator would. */
  makeRoom(api: Api): Promise<void>;
}

export interface DiskFullOptions {
  readonly cycles: number;
  readonly random: Random;
  readonly clock: Clock;
  readonly port: number;
  /** Ends the server and starts it on the same folder, on some of the full disks. @returns its port */
  readonly restart?: () => Promise<number>;
  readonly operatorToken: string;
  /** The server's limit: the most concurrent attempts to one webhook. */
  readonly webhookConcurrency: number;
  readonly disk: Disk;
  readonly switchboard: Switchboard;
  readonly faults: Faults;
  /** Updated as the test runs. */
  readonly figures: DiskFullFigures;
  onProgress?(figures: DiskFullFigures): void;
}

/** The accounts whose events and deliveries must come through. */
const cast: readonly (readonly Manner[])[] = [
  ["steady", "slow"],
  ["unsteady", "slow"],
];

/** Events of each account before the disk is full; by then, some of them are delivered and some are not. */
const eventsInCycle = 25;
/** Payloads that fill the disk, down to ones that only just do not fit. */
const fillings: readonly { count: number; bytes: number }[] = [
  { count: 50, bytes: 20_000 },
  { count: 5, bytes: 20_000 },
  { count: 1, bytes: 20_000 },
  { count: 1, bytes: 100 },
];
/** On every nth full disk the server is ended and restarted. */
const restartEvery = 3;
const batchSize = 3;
/** Requests made on the full disk after the webhooks have answered, so that the server has tried to record the outcomes. */
const probes = 5;
const pollEveryMs = 50;
const patienceMs = 60_000;

/**
 * Fills the disk under a server again and again, makes room again, and holds it to its promises: while there is no room,
 * requests are refused with 503 and `Retry-After` and leave nothing behind, reading still works, and what webhooks answer is
 * not forgotten; once there is room, everything resumes by itself. Nothing arrives twice except what a kill has cut off.
 */
export function createDiskFullRun(options: DiskFullOptions): () => Promise<void> {
  const { cycles, random, clock, operatorToken, webhookConcurrency, disk, switchboard, faults, figures } = options;
  const ledger = createLedger(faults);
  const accounts: Account[] = [];
  let api: Api;
  let connection: Connection;
  /** Attempts that are in no record and never will be. */
  let cut = 0;

  async function connectTo(port: number): Promise<void> {
    api = createApi(`http://127.0.0.1:${port}`);
    const made = await connect(port);
    if (made === null) throw new Error(`nothing is listening on port ${port}`);
    connection = made;
  }

  function compose(account: Account, count: number, idempotencyKey: string | null): SentRequest {
    const payloads = Array.from({ length: count }, (_, i) => createPayload(random, ledger.figures.sent + i + 1));
    const bytes = writeIngestRequest(account, payloads, count > 1, idempotencyKey);
    return ledger.add(account, payloads, bytes, idempotencyKey);
  }

  async function answerTo(bytes: Uint8Array): Promise<Message> {
    const answer = await connection.send(bytes);
    if (answer === null) throw new Error("the server closed the connection");
    if (statusIn(answer) !== 202) checkRefusal(answer);
    return answer;
  }

  function checkRefusal({ startLine, headers, body }: Message): void {
    figures.refusals += 1;
    const isKnown = startLine.includes(" 503 ") && /"code":"storage_(full|unavailable)"/.test(body.toString("utf8"));
    if (!isKnown) ledger.fault(`a full disk was answered with ${startLine}: ${body}`);
    const seconds = headers.get("retry-after") ?? "";
    if (!/^[1-9]\d*$/.test(seconds)) ledger.fault(`503 came with Retry-After: "${seconds}"`);
  }

  /** @returns whether it was accepted */
  async function exchange(request: SentRequest): Promise<boolean> {
    const answer = await answerTo(request.bytes);
    const isAccepted = statusIn(answer) === 202;
    if (isAccepted) ledger.acknowledged(request, eventIdsIn(answer));
    else ledger.refused(request);
    return isAccepted;
  }

  /** Sends smaller and smaller payloads, until not even one small event fits. */
  async function fill(filler: Account): Promise<number> {
    let accepted = 0;
    for (const { count, bytes } of fillings) {
      const payload = Buffer.from(`{"filler":"${"x".repeat(bytes)}"}`);
      const payloads = Array.from({ length: count }, () => payload);
      const request = writeIngestRequest(filler, payloads, count > 1, null);
      while (statusIn(await answerTo(request)) === 202) accepted += count;
    }
    figures.filling += accepted;
    return accepted;
  }

  /** Room too small for any filler may still be enough for a small event of another account; then more filling is needed. */
  async function fillUntilRefused(filler: Account, account: Account) {
    for (let filled = 0; ; ) {
      filled += await fill(filler);
      const waiting = compose(account, 1, `waits-${ledger.figures.sent}`);
      if (!(await exchange(waiting))) return { waiting, filled };
    }
  }

  async function unrecorded(): Promise<number> {
    // Read before the lists, which take time: they do not contain what arrives meanwhile.
    const { arrivals } = ledger.figures;
    const records = (await Promise.all(accounts.map((account) => listRecords(api, account)))).flat();
    return arrivals - records.reduce((sum, { attempts }) => sum + attempts, 0);
  }

  /** Attempts whose outcome waits in memory for room; their number is bounded, because nothing new starts. */
  async function countHeld(): Promise<void> {
    const held = (await unrecorded()) - cut;
    figures.held += held;
    const hooks = accounts.flatMap((account) => account.hooks).length;
    if (held <= hooks * webhookConcurrency) return;
    ledger.fault(`${held} attempts wait for disk space, but ${hooks} webhooks get ${webhookConcurrency} each at once`);
  }

  async function runCycle(first: Account, second: Account): Promise<void> {
    const release = switchboard.hold();
    for (let n = 0; n < eventsInCycle; n++) {
      for (const account of accounts) await exchange(compose(account, 1, null));
    }
    const filler = await disk.fillUp(api);
    const before = await countIn(api, "FAILED", filler);
    const { waiting, filled } = await fillUntilRefused(filler, first);
    await exchange(compose(second, batchSize, null));
    const stored = (await countIn(api, "FAILED", filler)) - before;
    if (stored !== filled) {
      ledger.fault(`${filled} events were acknowledged until the disk was full, and ${stored} are stored`);
    }
    // The webhooks answer now, while nothing can be recorded.
    release();
    for (let n = 0; n < probes; n++) await exchange(waiting);
    await countHeld();
    const isForRestart = (figures.cycles + 1) % restartEvery === 0;
    if (options.restart && isForRestart) await restartWhileFull(options.restart);
    await disk.makeRoom(api);
    await whenAccepted(waiting);
    await exchange(waiting);
    const left = await whenSettled(clock, ledger, async () => {
      const pending = await Promise.all(accounts.map((account) => countIn(api, "PENDING", account)));
      return pending.reduce((sum, count) => sum + count, 0);
    });
    if (left > 0) ledger.fault(`${left} deliveries are unfinished and no longer progress, although there is space`);
    cut = await unrecorded();
  }

  /** Everything that was read before must still be there, and the disk is as full as it was. */
  async function restartWhileFull(restart: () => Promise<number>): Promise<void> {
    connection.close();
    ledger.life += 1;
    figures.restarts += 1;
    await connectTo(await restart());
    for (let n = 0; n < probes; n++) await exchange(compose(accounts[0] as Account, 1, null));
  }

  async function whenAccepted(request: SentRequest): Promise<void> {
    const since = clock.monotonicMs();
    while (!(await exchange(request))) {
      if (clock.monotonicMs() - since > patienceMs) return ledger.fault("there is space, but nothing is accepted");
      await sleep(clock, pollEveryMs);
    }
    figures.resumedMs.push(clock.monotonicMs() - since);
  }

  async function openAccounts(): Promise<[Account, Account]> {
    for (const manners of cast) {
      const hooks = switchboard.newHooks(manners);
      const account = await openAccount(api, { hooks, receiverUrl: switchboard.url, operatorToken });
      switchboard.connect(account, ledger);
      accounts.push(account);
    }
    return accounts as [Account, Account];
  }

  async function compareBooks(): Promise<void> {
    let cutInAll = 0;
    for (const account of accounts) {
      const { ended, unrecordedAttempts } = await auditAccount(api, account, ledger, switchboard.url);
      figures.records += ended.DELIVERED + ended.FAILED;
      cutInAll += unrecordedAttempts;
    }
    figures.verifiedSignatures = switchboard.verified;
    const most = figures.restarts * webhookConcurrency * accounts.flatMap((account) => account.hooks).length;
    if (cutInAll > most)
      ledger.fault(`${cutInAll} attempts are in no record, but kills can have interrupted at most ${most}`);
  }

  return async function run() {
    await connectTo(options.port);
    const [first, second] = await openAccounts();
    while (figures.cycles < cycles) {
      await runCycle(first, second);
      figures.cycles += 1;
      Object.assign(figures, ledger.figures);
      options.onProgress?.(figures);
    }
    connection.close();
    await compareBooks();
  };
}
