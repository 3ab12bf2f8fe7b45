import { webhookDisabled, webhookRemoved } from "../../../../src/domain/failure.ts";
import type { HistoryEnd } from "./history.ts";
import type { Sent } from "./network.ts";
import { createReplayBooks } from "./replay-books.ts";
import { type DeliveryRow, type EventRow, readWitness, type WebhookRow } from "./witness.ts";

const pending = 0;
const delivered = 1;
const failed = 2;
const givenUpReasons: readonly (string | null)[] = [webhookRemoved.reason, webhookDisabled.reason];

type Move =
  | "returned"
  | "retried"
  | "delivered"
  | "failed"
  | "given up"
  | "corrected"
  | "logged late"
  | "begun anew"
  | "let go";

/** What happened to a record between two versions of its row; null when no rule knows it. */
function moveOf(was: DeliveryRow, is: DeliveryRow): Move | null {
  if (was.key !== is.key || was.event_seq !== is.event_seq || was.webhook_key !== is.webhook_key) return null;
  const made = is.attempts - was.attempts;
  const madeInRun = is.attempts_in_run - was.attempts_in_run;
  if (is.run === was.run + 1) {
    const isBegun = is.state === pending && is.attempts_in_run === 0 && is.replay_key !== null;
    if (was.state === pending && was.replay_key !== null && made === 0 && !isBegun) return "returned";
    const isNew = is.state === pending && is.attempts_in_run === 0 && made === 0 && is.replay_key !== null;
    return isNew ? "begun anew" : null;
  }
  if (is.run !== was.run || is.replay_key !== was.replay_key) return null;
  const isLetGo = was.next_attempt_at === null && is.next_attempt_at !== null && made === 0;
  if (was.state === pending && is.state === pending && isLetGo) return "let go";
  if (is.state === was.state && made === 1 && madeInRun === 0) return "logged late";
  if (was.state === pending && made === 1 && madeInRun === 1) {
    return is.state === pending ? "retried" : is.state === delivered ? "delivered" : "failed";
  }
  const wasGivenUp = was.state === failed && givenUpReasons.includes(was.error_reason);
  if (wasGivenUp && is.state !== pending && made === 1 && madeInRun === 1) return "corrected";
  const isGivenUp = is.state === failed && givenUpReasons.includes(is.error_reason) && made === 0 && madeInRun === 0;
  return was.state === pending && isGivenUp ? "given up" : null;
}

/** Goes through everything that was ever committed, in order, and judges each step by what came before it. */
export function checkBooks({ client, network, findings, scheduleMs }: HistoryEnd): void {
  const { expect, broken } = findings;
  const events = new Map<number, EventRow & { expected: number; found: number }>();
  const records = new Map<number, DeliveryRow>();
  const webhooks = new Map<number, WebhookRow>();
  const registered = new Map<number, Set<number>>();
  const deletedTenants = new Set<number>();
  const attempts: { event_seq: number; webhook_key: number; url: string; number: number }[] = [];
  const registeredOf = (tenantKey: number) => registered.get(tenantKey) ?? new Set<number>();

  const sentInRun = new Map<string, Sent[]>();
  const unlogged = new Map<string, number>();
  for (const sent of network.all) {
    const { deliveryKey, run, eventSeq, webhookKey } = sent.delivery;
    const key = `${deliveryKey} ${run}`;
    sentInRun.set(key, [...(sentInRun.get(key) ?? []), sent]);
    const entry = `${eventSeq} ${webhookKey} ${sent.at} ${sent.status}`;
    unlogged.set(entry, (unlogged.get(entry) ?? 0) + 1);
  }

  const isOpen = (key: number) => webhooks.get(key)?.disabled_at === null;
  const openOf = (tenantKey: number) => new Set([...registeredOf(tenantKey)].filter(isOpen));
  const replays = createReplayBooks({ findings, records, events, openOf });

  /** What each record that waits for a replay was before; null: there was none. */
  const before = new Map<number, DeliveryRow | null>();

  function begun(was: DeliveryRow, is: DeliveryRow): void {
    lined(is, was);
    replays.queued(is, was);
    if (was.state !== pending || was.replay_key === null) before.set(is.key, was);
  }

  function returned(was: DeliveryRow, is: DeliveryRow): void {
    const known = before.get(is.key);
    // Where it waits in a line, others have moved on meanwhile.
    const isInLine = is.order_hash !== null || known?.order_hash != null;
    const told = ({ state, attempts_in_run, next_attempt_at, error_reason, replay_key }: DeliveryRow) =>
      JSON.stringify({ state, attempts_in_run, error_reason, replay_key, ...(!isInLine && { next_attempt_at }) });
    // One that took the place of a failed record has failed in its stead.
    const isAsBefore = known ? told(known) === told(is) : is.state === failed;
    expect(isAsBefore, "cancelled", () => `record ${is.key} was ${known && told(known)}, and is ${told(is)}`);
    replays.returned(was);
  }

  /** As the webhook is when the record's run begins, or still as it was then. */
  function lined(is: DeliveryRow, was: DeliveryRow | null): void {
    const key = events.get(is.event_seq)?.ordering_key ?? null;
    const isOrdered = webhooks.get(is.webhook_key ?? 0)?.ordered === 1;
    const mayStay = was?.state === pending && is.order_hash === was.order_hash;
    const hasLine = is.order_hash !== null;
    expect(
      hasLine === (isOrdered && key !== null && is.state === pending) || mayStay,
      "ordered",
      () => `record ${is.key} with key ${key} stands in ${is.order_hash}; ordered: ${isOrdered}`,
    );
  }

  /** It has become the head of its line: nobody else is, and nobody who waits comes before it. */
  function letGo(is: DeliveryRow): void {
    if (is.order_hash === null) return;
    const others = [...records.values()].filter(
      ({ key, webhook_key, order_hash, state }) =>
        key !== is.key && webhook_key === is.webhook_key && order_hash === is.order_hash && state === pending,
    );
    const head = others.find(({ next_attempt_at }) => next_attempt_at !== null);
    expect(head === undefined, "ordered", () => `record ${is.key} was let go beside ${head?.key}`);
    const first = others.find(({ event_seq }) => event_seq < is.event_seq);
    expect(first === undefined, "ordered", () => `record ${is.key} was let go before ${first?.key}`);
  }

  function stored(is: DeliveryRow): void {
    const what = `record ${is.key} of event ${is.event_seq} for webhook ${is.webhook_key}`;
    const own = registeredOf(is.tenant_key);
    const isFor = is.webhook_key === null ? own.size === 0 : own.has(is.webhook_key);
    expect(isFor, "complete", () => `${what}: registered were ${[...own]}`);
    const twins = [...records.values()].filter(
      ({ event_seq, webhook_key }) => event_seq === is.event_seq && webhook_key === is.webhook_key,
    );
    expect(twins.length === 0, "complete", () => `${what} is there twice`);
    lined(is, null);
    const event = events.get(is.event_seq);
    if (!event || event.tenant_key !== is.tenant_key) broken("stored", `${what} belongs to no event of the account`);
    else if (is.replay_key === null) event.found += 1;
    else {
      replays.queued(is, null);
      before.set(is.key, null);
    }
  }

  function moved(was: DeliveryRow, is: DeliveryRow): void {
    const move = moveOf(was, is);
    const what = `record ${is.key}, run ${is.run}`;
    if (move === null) {
      broken("legal", `${JSON.stringify(was)} became ${JSON.stringify(is)}`);
      return;
    }
    if (move === "returned") {
      returned(was, is);
      return;
    }
    const late = move === "corrected" || move === "logged late" ? 1 : 0;
    expect(
      is.attempts_in_run <= scheduleMs.length + 1 + late,
      "schedule",
      () => `${what}: ${is.attempts_in_run} attempts`,
    );
    const inRun = sentInRun.get(`${is.key} ${is.run}`) ?? [];
    const has = (low: number, high: number) =>
      inRun.some(({ fate, status }) => fate === "answered" && status !== null && status >= low && status <= high);
    if (is.state === delivered && move !== "logged late") {
      expect(has(200, 299), "proven", () => `${what} is DELIVERED without a 2xx`);
    }
    if (move === "failed" && !givenUpReasons.includes(is.error_reason)) {
      const isUsedUp = is.attempts_in_run === scheduleMs.length + 1;
      expect(isUsedUp || has(400, 499), "proven", () => `${what} is FAILED: ${is.error_reason}`);
    }
    if (givenUpReasons.includes(is.error_reason) && (move === "given up" || move === "failed")) {
      const webhook = webhooks.get(is.webhook_key ?? 0);
      const closedAt = is.error_reason === webhookRemoved.reason ? webhook?.removed_at : webhook?.disabled_at;
      expect(closedAt !== null, "proven", () => `${what} was given up (${is.error_reason}), and its webhook is open`);
    }
    if (move === "let go") letGo(is);
    if (move === "begun anew") begun(was, is);
    else if (move === "delivered" || move === "failed" || move === "given up") {
      replays.ended(is.replay_key, move === "delivered" ? "delivered" : "failed");
    } else if (move === "corrected" && is.state === delivered) replays.corrected(is.replay_key);
  }

  function erased(was: DeliveryRow): void {
    if (deletedTenants.has(was.tenant_key)) return;
    if (was.state === pending && before.get(was.key) === null) {
      const others = [...records.values()].filter(({ event_seq }) => event_seq === was.event_seq);
      expect(others.length > 1, "final", () => `event ${was.event_seq} has no record any more`);
      replays.returned(was);
      return;
    }
    const isReplaceable =
      was.state === failed && (was.webhook_key === null || !registeredOf(was.tenant_key).has(was.webhook_key));
    expect(isReplaceable, "final", () => `record ${JSON.stringify(was)} has vanished`);
  }

  function listed(is: WebhookRow): void {
    const own = registeredOf(is.tenant_key);
    if (is.removed_at === null) own.add(is.key);
    else own.delete(is.key);
    registered.set(is.tenant_key, own);
    webhooks.set(is.key, is);
  }

  function forgotten({ key, tenant_key }: WebhookRow): void {
    registeredOf(tenant_key).delete(key);
    webhooks.delete(key);
    if (deletedTenants.has(tenant_key)) return;
    const isNamed = [...records.values(), ...attempts].some(({ webhook_key }) => webhook_key === key);
    expect(!isNamed, "named", () => `webhook ${key} was forgotten`);
  }

  for (const entry of readWitness(client)) {
    if (entry.of === "event") {
      const expected = registeredOf(entry.is.tenant_key).size || 1;
      events.set(entry.is.seq, { ...entry.is, expected, found: 0 });
    } else if (entry.of === "delivery") {
      if (entry.was === null && entry.is) stored(entry.is);
      else if (entry.was && entry.is) moved(entry.was, entry.is);
      else if (entry.was) erased(entry.was);
      if (entry.is) records.set(entry.is.key, entry.is);
      else if (entry.was) records.delete(entry.was.key);
    } else if (entry.of === "webhook") {
      if (entry.is) listed(entry.is);
      else if (entry.was) forgotten(entry.was);
    } else if (entry.of === "attempt") {
      const { event_seq, webhook_key, number, started_at, status_code } = entry.is;
      const made = `${event_seq} ${webhook_key} ${started_at} ${status_code}`;
      const left = unlogged.get(made) ?? 0;
      expect(left > 0, "log", () => `the log has an attempt that was not made: ${JSON.stringify(entry.is)}`);
      unlogged.set(made, left - 1);
      if (deletedTenants.has(entry.is.tenant_key)) broken("silenced", "an attempt was logged for a deleted account");
      const url = webhooks.get(webhook_key)?.url;
      if (url === undefined) broken("named", `an attempt names webhook ${webhook_key}`);
      attempts.push({ event_seq, number, webhook_key, url: url ?? "" });
    } else if (entry.of === "replay") {
      replays.changed(entry.was, entry.is);
    } else if (entry.is.deleted_at !== null) {
      deletedTenants.add(entry.is.key);
      replays.tenantDeleted(entry.is.key);
    }
  }

  for (const { seq, tenant_key, expected, found } of events.values()) {
    if (deletedTenants.has(tenant_key)) continue;
    expect(expected === found, "complete", () => `event ${seq} has ${found} records, ${expected} were to be made`);
  }
  for (const { key, tenant_key, state } of records.values()) {
    if (deletedTenants.has(tenant_key)) broken("final", `record ${key} of a deleted account is still there`);
    else expect(state !== pending, "final", () => `record ${key} is still pending`);
  }
  replays.close(deletedTenants);

  const numbers = new Map<string, number[]>();
  for (const { event_seq, url, number } of attempts) {
    const key = `event ${event_seq} to ${url}`;
    numbers.set(key, [...(numbers.get(key) ?? []), number]);
  }
  for (const [key, given] of numbers) {
    const sorted = given.sort((a, b) => a - b);
    const isWhole = sorted.every((number, i) => number === i + 1);
    expect(isWhole, "log", () => `${key} has the attempts ${sorted}`);
  }
}
