/** What the server should know, as plain maps and lists: the interface's rules once more, as simply as they can be said. */
export interface Model {
  /** Those that were created, in order; a deleted one stays, to be asked for. */
  readonly tenants: ModelTenant[];
}

export interface ModelTenant {
  readonly id: string;
  readonly jwt: string;
  /** The newest first. */
  keys: { key: string; isActive: boolean }[];
  tier: keyof typeof webhookLimits;
  webhooks: ModelWebhook[];
  /** The oldest first. */
  readonly events: ModelEvent[];
  readonly idempotency: Map<string, { request: string; eventIds: string[] }>;
  /** The oldest first. */
  readonly replays: ModelReplay[];
  isDeleted: boolean;
}

/** A URL that is removed and registered again is another webhook. */
export interface ModelWebhook {
  readonly url: string;
  name: string;
}

export interface ModelEvent {
  readonly id: string;
  readonly payload: string;
  readonly records: ModelRecord[];
  /** Attempts to each URL, over all records and runs. */
  readonly attempts: Map<string, number>;
}

export interface ModelRecord {
  /** Null: no webhook was registered as the event arrived. */
  readonly webhook: ModelWebhook | null;
  state: "DELIVERED" | "FAILED";
  attempts: number;
  label: string | null;
  /** Of one that was on its way as its replay was cancelled: what only the server can know, until its next run. */
  learned?: Pick<SeenRecord, "errorCode" | "statusCode" | "lastAttemptAt" | "lastDurationMs">;
}

/** A record as the server shows it. */
export interface SeenRecord {
  readonly targetWebhook: string;
  readonly state: ModelRecord["state"];
  readonly attempts: number;
  readonly replayGroupId: string | null;
  readonly errorCode: string | null;
  readonly statusCode: number | null;
  readonly lastAttemptAt: string | null;
  readonly lastDurationMs: number | null;
}

export interface ModelReplay {
  readonly id: string;
  status: "completed" | "cancelled";
  readonly kind: ReplayKind;
  readonly label: string;
  readonly selected: number;
  queued: number;
  delivered: number;
  failed: number;
  skipped: number;
  returned?: number;
}

export type ReplayKind = "single" | "timeline" | "all" | "failed";

/** Specification, "Limits". */
export const webhookLimits = { free: 1, pro: 1, business: 2, enterprise: 3 } as const;

/**
 * What the receivers of the test do, by the end of their path: how many attempts a run takes after so many of the event before,
 * and how it ends. The flaky one takes every other: a run that was cancelled halfway leaves it with the one that it takes.
 */
export const receivers = {
  ok: { attempts: () => 1, state: "DELIVERED" },
  flaky: { attempts: (before: number) => (before % 2 === 0 ? 2 : 1), state: "DELIVERED" },
  gone: { attempts: () => 1, state: "FAILED" },
} as const;

const behaviourOf = (url: string) => receivers[url.slice(url.lastIndexOf("/") + 1) as keyof typeof receivers];

/** A run of a record, from its first attempt to its end. */
function run(event: ModelEvent, record: ModelRecord, label: string | null): void {
  if (record.webhook === null) return;
  const { url } = record.webhook;
  const { attempts: attemptsAfter, state } = behaviourOf(url);
  const before = event.attempts.get(url) ?? 0;
  const attempts = attemptsAfter(before);
  event.attempts.set(url, before + attempts);
  record.attempts += attempts;
  record.state = state;
  record.label = label;
  delete record.learned;
}

/** Rules, section 7: one record for each webhook, or one that says that there is none. */
export function accept(tenant: ModelTenant, id: string, payload: string): void {
  const event: ModelEvent = { id, payload, records: [], attempts: new Map() };
  const targets = tenant.webhooks.length > 0 ? tenant.webhooks : [null];
  for (const webhook of targets) {
    const record: ModelRecord = { webhook, state: "FAILED", attempts: 0, label: null };
    event.records.push(record);
    run(event, record, null);
  }
  tenant.events.push(event);
}

/** Rules, section 9: the id of a URL that stays is kept, and so is what is known of it. */
export function replaceWebhooks(tenant: ModelTenant, wanted: readonly ModelWebhook[]): void {
  tenant.webhooks = wanted.map(({ url, name }) => {
    const stays = tenant.webhooks.find((webhook) => webhook.url === url);
    if (stays) stays.name = name;
    return stays ?? { url, name };
  });
}

export const isFailed = ({ records }: ModelEvent) => records.some(({ state }) => state === "FAILED");

export interface ReplayOrder {
  /** As the server named it. */
  readonly id: string;
  readonly kind: ReplayKind;
  readonly label: string;
  readonly events: readonly ModelEvent[];
}

/** Rules, section 10: one that has not begun leaves all as it is. */
export function cancelWaiting(tenant: ModelTenant, { events, ...order }: ReplayOrder): void {
  const counts = { selected: events.length, queued: 0, delivered: 0, failed: 0, skipped: 0 };
  tenant.replays.push({ ...order, status: "cancelled", ...counts });
}

/**
 * Rules, section 10: of one that is cancelled on its way, the server alone knows what had been sent by then. A record that
 * no attempt was made of is what it was, and what had none may have one in the place of another.
 *
 * @param records of an event, with the numbers of attempts to each URL
 */
export function cancelHalfway(
  { webhooks }: ModelTenant,
  event: ModelEvent,
  records: readonly SeenRecord[],
  attempts: ReadonlyMap<string, number>,
): void {
  const known = event.records.splice(0);
  for (const [url, count] of attempts) event.attempts.set(url, count);
  for (const { targetWebhook: url, state, attempts, replayGroupId: label, ...rest } of records) {
    const was = known.find(({ webhook }) => (webhook?.url ?? "") === url);
    if (was) known.splice(known.indexOf(was), 1);
    if (was?.attempts === attempts && (was.state !== state || was.label !== label)) {
      throw new Error(`A record of ${event.id} was ${was.state}, and is ${state}`);
    }
    const webhook = was?.webhook ?? webhooks.find((candidate) => candidate.url === url) ?? null;
    event.records.push({ webhook, state, attempts, label, learned: pickLearned(rest) });
  }
}

const pickLearned = ({
  errorCode,
  statusCode,
  lastAttemptAt,
  lastDurationMs,
}: NonNullable<ModelRecord["learned"]>) => ({
  ...{ errorCode, statusCode, lastAttemptAt, lastDurationMs },
});

/** Rules, section 10. */
export function replay(tenant: ModelTenant, { events, ...order }: ReplayOrder, status: ModelReplay["status"]): void {
  const { kind, label } = order;
  const counts = { selected: events.length, queued: 0, delivered: 0, failed: 0, skipped: 0 };
  const told: ModelReplay = { ...order, status, ...counts };
  for (const event of events) {
    let added = 0;
    for (const webhook of tenant.webhooks) {
      let record = event.records.find((candidate) => candidate.webhook === webhook);
      if (kind === "failed" && record?.state === "DELIVERED") continue;
      if (!record) {
        // Attempts go on counting, also those to a record that is no more.
        record = { webhook, state: "FAILED", attempts: event.attempts.get(webhook.url) ?? 0, label };
        event.records.push(record);
        added += 1;
      }
      run(event, record, label);
      told.queued += 1;
      told[record.state === "DELIVERED" ? "delivered" : "failed"] += 1;
    }
    const lost = event.records.filter(
      ({ webhook, state }) => state === "FAILED" && (webhook === null || !tenant.webhooks.includes(webhook)),
    );
    if (added === 0) told.skipped += lost.length;
    else for (const record of lost) event.records.splice(event.records.indexOf(record), 1);
  }
  tenant.replays.push(told);
}

/** All records, as the lists show them: the newest event first, those of one event in their order. */
export const recordsOf = (tenant: ModelTenant) =>
  tenant.events.toReversed().flatMap((event) => event.records.map((record) => ({ event, record })));
