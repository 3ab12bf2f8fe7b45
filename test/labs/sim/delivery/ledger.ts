import type { Database } from "bun:sqlite";

/** A request to ingest, as its client remembers it, with every time that it was made. */
export interface Submission {
  readonly tenantKey: number;
  readonly payloads: readonly string[];
  readonly idempotencyKey: string | null;
  readonly tries: Try[];
}

/** Of an event with this payload: a client gives the same one each time. Two in five have none. */
export function orderingKeyOf(payload: string): string | null {
  const marker = Number(/\d+/.exec(payload)?.[0]);
  return ["a", "b", "a", null, null][marker % 5] ?? null;
}

export interface Try {
  /** `lost`: the program crashed before it answered, so nobody knows. */
  fate: "under way" | "accepted" | "refused" | "lost";
  eventIds: readonly string[];
}

export interface Account {
  readonly key: number;
  readonly id: string;
  /** URLs that it registers from. */
  readonly urls: readonly string[];
  /** Changes of one kind that are under way: while there are two, nobody knows which comes last. */
  putsUnderWay: number;
  /** Two of them have been under way since none was. */
  hasPutsBeside: boolean;
  /** The operator's suspension or its end is under way. */
  isChanging: boolean;
  isDeleted: boolean;
}

/** What has been answered so far, from outside. It holds the program to its word. */
export function createLedger(client: Database) {
  const submissions: Submission[] = [];
  const accounts: Account[] = [];
  const replayIds: { tenantKey: number; id: string }[] = [];
  /** No attempt may start to these webhooks any more, … */
  const removedWebhooks = new Set<number>();
  /** … for these accounts, … */
  const deletedAccounts = new Set<number>();
  /** … and for these until they are resumed. */
  const pausedAccounts = new Set<number>();
  /** Nor of the runs of these replays, by their ids. */
  const cancelledReplays = new Set<string>();

  const selectRemoved = client.prepare<{ key: number; url: string }, [number]>(
    "select key, url from webhook where tenant_key = ?1 and removed_at is not null",
  );
  const selectAllRemoved = client.prepare<{ key: number }, []>("select key from webhook where removed_at is not null");
  const selectPaused = client.prepare<{ key: number }, []>(
    "select key from tenant where operator_suspended_at is not null and deleted_at is null",
  );
  const selectCancelled = client.prepare<{ id: string }, []>("select id from replay where phase = 'cancelled'");
  const selectAlive = client.prepare<{ key: number }, []>("select key from tenant where deleted_at is null");

  return {
    submissions: submissions as readonly Submission[],
    accounts: accounts as readonly Account[],
    replayIds: replayIds as readonly { tenantKey: number; id: string }[],
    removedWebhooks: removedWebhooks as ReadonlySet<number>,
    deletedAccounts: deletedAccounts as ReadonlySet<number>,
    pausedAccounts: pausedAccounts as ReadonlySet<number>,
    cancelledReplays: cancelledReplays as ReadonlySet<string>,

    addAccount: (account: Account) => void accounts.push(account),
    addSubmission: (submission: Submission) => void submissions.push(submission),
    addReplay: (tenantKey: number, id: string) => void replayIds.push({ tenantKey, id }),

    /** A PUT was answered. What it removed is known from outside only if no other one was under way beside it. */
    webhooksReplaced({ key, putsUnderWay }: Account, urls: readonly string[]): void {
      if (putsUnderWay > 1) return;
      const registered = new Set(urls);
      for (const webhook of selectRemoved.all(key)) {
        if (!registered.has(webhook.url)) removedWebhooks.add(webhook.key);
      }
    },
    replayCancelled: (id: string) => void cancelledReplays.add(id),
    suspended: (tenantKey: number) => void pausedAccounts.add(tenantKey),
    /** Asked for, not answered: attempts may begin before the answer comes. */
    resuming: (tenantKey: number) => void pausedAccounts.delete(tenantKey),
    deleted: (tenantKey: number) => void deletedAccounts.add(tenantKey),

    /** After a crash everybody asks how things stand, and the program is held to what is on disk. */
    readBack(): void {
      for (const { key } of selectAllRemoved.all()) removedWebhooks.add(key);
      for (const { id } of selectCancelled.all()) cancelledReplays.add(id);
      pausedAccounts.clear();
      for (const { key } of selectPaused.all()) pausedAccounts.add(key);
      const alive = new Set(selectAlive.all().map(({ key }) => key));
      for (const account of accounts) {
        if (!alive.has(account.key)) deletedAccounts.add(account.key);
        account.isDeleted = deletedAccounts.has(account.key);
        account.putsUnderWay = 0;
        account.hasPutsBeside = false;
        account.isChanging = false;
      }
    },
  };
}

export type Ledger = ReturnType<typeof createLedger>;
