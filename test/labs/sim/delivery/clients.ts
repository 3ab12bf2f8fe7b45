import { createHash } from "node:crypto";
import { byAccount } from "../../../../src/domain/audit.ts";
import { accountGone } from "../../../../src/domain/standing.ts";
import { ingestedAtMs, parseEventId } from "../../../../src/lib/id.ts";
import type { Random } from "../../../../src/lib/random.ts";
import type { BulkSelection } from "../../../../src/replays/replay.ts";
import type { FakeClock } from "../../../support/fake-clock.ts";
import { latestKey } from "../../../support/store-factory.ts";
import type { Incarnation } from "./incarnation.ts";
import { type Account, type Ledger, orderingKeyOf, type Submission, type Try } from "./ledger.ts";
import { moods, type Network } from "./network.ts";
import type { Entry, ThrottleModel } from "./throttle.ts";

/** Where nobody looks from where. */
const origin = byAccount("192.0.2.1");

/** What becomes of a request. It may also be that nothing does: then the program has died. */
export interface Heard<T> {
  answered?(value: T): void;
  refused?(): void;
  /** The program crashed, and nobody knows. */
  lost?(): void;
}

export interface ClientDeps {
  clock: FakeClock;
  random: Random;
  ledger: Ledger;
  throttle: ThrottleModel;
  network: Network;
  /** Asks something of the program; false when it is down. */
  act<T>(ask: (running: Incarnation) => Promise<T>, heard?: Heard<T>): boolean;
  /** Something that must not be there. */
  onAttemptsAfterDeletion(tenantKey: number): void;
}

/** Whoever has the accounts, and the operator: they submit, register, replay, cancel, suspend, resume and delete. */
export function createClients({ clock, random, ledger, throttle, network, act, onAttemptsAfterDeletion }: ClientDeps) {
  let marker = 0;
  const living = () => ledger.accounts.filter(({ isDeleted }) => !isDeleted);
  const pickFrom = <T>(items: readonly T[]): T | undefined => items[Math.floor(random.next() * items.length)];

  async function tenantOf(running: Incarnation, { id }: Account) {
    const tenant = await running.store.findTenant(id);
    if (!tenant) throw accountGone();
    return tenant;
  }

  // ---------------------------------------------------------------- ingestion

  /** Texts that no parser would write again as they are. */
  function newPayload(): string {
    marker += 1;
    return random.pick([
      `{"marker":${marker}}`,
      `{ "marker": ${marker}, "n": 1.0 }`,
      `{"marker":${marker},"a":1,"a":2}`,
    ]);
  }

  function submit(account: Account, events: number, idempotencyKey: string | null): void {
    const payloads = Array.from({ length: events }, newPayload);
    const submission: Submission = { tenantKey: account.key, payloads, idempotencyKey, tries: [] };
    if (attempt(account, submission)) ledger.addSubmission(submission);
  }

  function attempt(account: Account, submission: Submission): boolean {
    const { payloads, idempotencyKey, tries } = submission;
    const fingerprint = createHash("sha256").update(payloads.join("\n")).digest();
    const mine: Try = { fate: "under way", eventIds: [] };
    const isHeard = act(
      async (running) => {
        const tenant = await tenantOf(running, account);
        const events = payloads.map((payload) => ({
          payload: Buffer.from(payload),
          type: null,
          orderingKey: orderingKeyOf(payload),
        }));
        return running.ingest(tenant, events, {
          apiKeyId: await latestKey(running.store, tenant.key),
          ...(idempotencyKey !== null && { idempotency: { key: idempotencyKey, fingerprint } }),
        });
      },
      {
        answered(eventIds) {
          mine.fate = "accepted";
          mine.eventIds = eventIds;
        },
        refused() {
          mine.fate = "refused";
        },
        lost() {
          mine.fate = "lost";
        },
      },
    );
    if (isHeard) tries.push(mine);
    return isHeard;
  }

  /** Clients that got no answer, or an error, try again, and some do for no reason. */
  function tryAgain(account: Account): void {
    const own = ledger.submissions.filter(
      ({ tenantKey, idempotencyKey }) => tenantKey === account.key && idempotencyKey !== null,
    );
    const submission = pickFrom(own);
    if (submission) attempt(account, submission);
  }

  const keyOrNot = () => (random.chance(0.4) ? `key-${marker}-${random.between(1, 9)}` : null);

  // ---------------------------------------------------------------- management

  /** Most name no setting, which leaves them as they are. */
  function entryOf(webhook_url: string): Entry {
    const entry = { webhook_url, name: "" };
    if (random.chance(0.5)) return entry;
    marker += 1;
    return random.pick<Entry>([
      { ...entry, paused: true },
      { ...entry, paused: false },
      { ...entry, rate_limit: random.pick([1, 5, 40, null]) },
      { ...entry, ordered: true },
      { ...entry, ordered: false },
      { ...entry, max_concurrency: random.pick([1, null]) },
      { ...entry, headers: random.pick([null, { "X-Mark": String(marker) }]) },
    ]);
  }

  function putWebhooks(account: Account): void {
    const urls = account.urls.filter(() => random.chance(0.6)).slice(0, 3);
    putEntries(account, urls.map(entryOf));
  }

  function putEntries(account: Account, entries: readonly Entry[]): void {
    const urls = entries.map(({ webhook_url }) => webhook_url);
    account.putsUnderWay += 1;
    account.hasPutsBeside = account.putsUnderWay > 1;
    throttle.changing(account.key);
    const ended = () => {
      account.putsUnderWay -= 1;
      if (account.putsUnderWay > 0) return;
      throttle.learn(account.key);
      account.hasPutsBeside = false;
    };
    const isHeard = act(async (running) => running.putWebhooks(await tenantOf(running, account), entries), {
      answered() {
        ledger.webhooksReplaced(account, urls);
        if (account.hasPutsBeside) throttle.forgetMarks(account.key);
        else throttle.marked(account.key, entries);
        ended();
      },
      refused: ended,
    });
    if (!isHeard) ended();
  }

  function suspend(account: Account): void {
    if (account.isChanging) return;
    const isPaused = ledger.pausedAccounts.has(account.key);
    const stayed = () => {
      account.isChanging = false;
      if (isPaused) ledger.suspended(account.key);
    };
    account.isChanging = true;
    if (isPaused) ledger.resuming(account.key);
    const isHeard = act(
      async ({ accounts, store }) => {
        const tenant = await store.findTenant(account.id);
        if (!tenant) throw accountGone();
        return isPaused ? accounts.resume(tenant, origin) : accounts.suspend(tenant, origin);
      },
      {
        answered() {
          if (!isPaused) ledger.suspended(account.key);
          account.isChanging = false;
        },
        refused: stayed,
      },
    );
    if (!isHeard) stayed();
  }

  function remove(account: Account): void {
    act(async (running) => running.accounts.remove(await tenantOf(running, account), origin), {
      answered() {
        account.isDeleted = true;
        ledger.deleted(account.key);
        const left = network.underWay().filter(({ delivery }) => delivery.tenantKey === account.key);
        if (left.length > 0) onAttemptsAfterDeletion(account.key);
      },
    });
  }

  const rotate = (account: Account) =>
    act(async (running) => {
      const tenant = await tenantOf(running, account);
      return random.chance(0.5)
        ? running.signingKeys.rotateSecret(tenant, origin)
        : running.signingKeys.rotate(tenant, 60, origin);
    });

  // ---------------------------------------------------------------- replays

  const knownIds = (account: Account) =>
    ledger.submissions
      .filter(({ tenantKey }) => tenantKey === account.key)
      .flatMap(({ tries }) => tries.flatMap(({ eventIds }) => eventIds));

  function replayOne(account: Account, eventId = pickFrom(knownIds(account))): void {
    if (eventId === undefined) return;
    act(
      async (running) =>
        running.replays.replayEvent(await tenantOf(running, account), { eventId, label: "one" }, origin),
      {
        answered: ({ id }) => ledger.addReplay(account.key, id),
      },
    );
  }

  function replayMany(account: Account): void {
    const kind = random.pick<BulkSelection["kind"]>(["all", "failed", "failed", "timeline"]);
    const at = parseEventId(pickFrom(knownIds(account)) ?? "");
    const from = at ? ingestedAtMs(at.seq) : clock.now();
    const range = kind === "timeline" ? { from, to: from + random.pick([0, 10_000, 100_000]) } : {};
    act(
      async (running) => running.replays.startBulk(await tenantOf(running, account), { kind, ...range }, kind, origin),
      {
        answered({ id }) {
          ledger.addReplay(account.key, id);
          // Some change their minds, with a part of it sent.
          if (random.chance(0.3)) clock.after(random.pick([0, 1, 30, 600, 5_000]), () => cancel(account, id));
        },
      },
    );
  }

  function cancel(account: Account, replayId = pickFrom(lateReplays(account))?.id): void {
    if (replayId === undefined) return;
    act(async (running) => running.replays.cancel(await tenantOf(running, account), replayId, origin), {
      answered({ id, status }) {
        if (status === "cancelled") ledger.replayCancelled(id);
      },
    });
  }

  /** A late one has not ended yet. */
  const lateReplays = ({ key }: Account) => ledger.replayIds.filter(({ tenantKey }) => tenantKey === key).slice(-4);

  const changeMood = ({ urls }: Account) => network.setMood(pickFrom(urls) ?? "", random.pick(moods));

  /** What anybody may do at any time, and how often compared with the rest. */
  const habits: readonly [number, (account: Account) => void][] = [
    [8, (account) => submit(account, 1, keyOrNot())],
    [3, (account) => submit(account, random.between(2, 8), keyOrNot())],
    [2, tryAgain],
    [3, putWebhooks],
    [2, suspend],
    [2, (account) => replayOne(account)],
    [2, replayMany],
    [2, (account) => cancel(account)],
    [1, rotate],
    [0.2, remove],
    [3, changeMood],
  ];
  const allShares = habits.reduce((sum, [share]) => sum + share, 0);

  return {
    submit,
    /** Somebody does something. */
    doSomething(): void {
      let luck = random.next() * allShares;
      const habit = habits.find(([share]) => {
        luck -= share;
        return luck < 0;
      });
      const account = pickFrom(living());
      if (account) habit?.[1](account);
    },
    /** Whoever watches a delivery end may ask for it again in the same moment. */
    async replayAtOnce(tenantKey: number, eventId: string, turns: number): Promise<void> {
      for (; turns > 0; turns -= 1) await new Promise<void>((resolve) => setImmediate(resolve));
      const account = living().find(({ key }) => key === tenantKey);
      if (account) replayOne(account, eventId);
    },
    /** Before the quiet time: whoever is suspended is resumed, and what is paused goes on. */
    resumeAll(): void {
      for (const account of living()) {
        const registered = throttle.urlsOf(account.key);
        putEntries(
          account,
          registered.map((webhook_url) => ({ webhook_url, name: "", paused: false, rate_limit: null })),
        );
      }
      for (const account of living()) if (ledger.pausedAccounts.has(account.key)) suspend(account);
    },
  };
}
