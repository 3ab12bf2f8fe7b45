import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RecordBody } from "../../support/api-server.ts";
import { endWithUs } from "../bench/cleanup.ts";
import { showProgress } from "../bench/output.ts";
import { makeDataDir, type Server, startProduct } from "../bench/servers.ts";
import { type Api, createApi } from "../bench/tenants.ts";
import type { Group, Receiver } from "./catalogue.ts";
import { type Healthy, startHealthy } from "./healthy.ts";
import { type AttemptBody, note, type Tally, wantedOf } from "./verdicts.ts";
import { type Crowd, type Crowds, type Friendly, makeCrowds, webhookCount } from "./webhooks.ts";

export interface HostileOptions {
  /** Attempts to each receiver, at least. */
  times: number;
  /** How late a timer may fire, ms. */
  maxLateMs: number;
  /** Turns of the warm-up. @default as many as the proof takes, but 3 to 10 */
  warmupTurns?: number | undefined;
  /** Runs `src/main.ts` instead of `dist/postrider`. */
  source: boolean;
  /** Where the data folder is made. */
  parent: string;
  /** Only receivers whose title has this text in it; for finding out which of them costs what. */
  only?: string;
}

export interface HostileResult {
  webhooks: number;
  turns: number;
  seconds: number;
  attempts: number;
  tallies: Tally[];
  leftOut: readonly string[];
  /** Resident memory, bytes: at the end of the warm-up, its peak, and the peak under the hostile receivers. */
  restingBytes: number;
  warmPeakBytes: number;
  hostilePeakBytes: number;
  healthy: { sent: number; received: number; p50Ms: number; p99Ms: number; maxMs: number; longestPauseMs: number };
  /** The same before the hostile receivers came. */
  healthyBefore: { p50Ms: number; p99Ms: number };
  /** Open in the server at the end, beyond those before the first delivery. */
  descriptorsLeft: number;
  isAlive: boolean;
  dataDir: string;
}

interface Catalogue {
  ca: string;
  receivers: Receiver[];
  leftOut: string[];
  friendly: Record<string, Friendly>;
}

/** More than the kernel takes in for a peer that does not read (64 KiB on Linux, as set at first), so the rest has to wait. */
const unreadPayload = { filler: "x".repeat(240 * 1024) };
const payload = { event_type: "hostile.tried" };
const pollMs = 100;
const defaultWarmup = { minTurns: 3, maxTurns: 10 };
/** So that a turn's quick events are spread over the time of its slow ones, and find connections that were kept. */
const quickEveryMs = 200;

/**
 * The whole server, a process of its own, beside hostile receivers, another one; this one posts the events. It works in
 * turns: one event for each slow webhook and several for each quick one, until all of them have been attempted and
 * nothing is in flight. The warm-up is the same with as many well-meant receivers, which are as slow; so what memory
 * grows afterwards is what hostility costs, and not what connections cost. Peaks depend on when the collector happens to
 * run: those of equal runs differ by 40 MB, and a shorter warm-up would have the lower one by chance.
 */
export async function runHostile({
  times,
  maxLateMs,
  warmupTurns,
  source,
  parent,
  only,
}: HostileOptions): Promise<HostileResult> {
  const { catalogue, end: endReceivers } = await startReceivers();
  const receivers = catalogue.receivers.filter(({ title }) => title.includes(only ?? ""));
  if (receivers.length === 0) throw new Error(`No receiver has "${only}" in its title.`);
  const dataDir = makeDataDir(parent);
  const caFile = join(dataDir, "ca.pem");
  writeFileSync(caFile, catalogue.ca);
  const healthy = startHealthy();
  const crowds = await makeCrowds(dataDir, receivers, catalogue.friendly, healthy.url);
  const server = await startProduct({
    dataDir,
    source,
    profileDir: undefined,
    // A verdict is seen in the record: what waits for its retry is retryable.
    env: { POSTRIDER_EXTRA_CA_FILE: caFile, POSTRIDER_RETRY_SCHEDULE: "1d" },
  });
  const api = createApi(server.port);
  const { turns, quickEvents } = planTurns(times, crowds);
  const friendlyTurns = warmupTurns ?? Math.min(Math.max(turns, defaultWarmup.minTurns), defaultWarmup.maxTurns);
  const turn = createTurn(api, healthy);

  const descriptorsBefore = await descriptorsAtRest(server);
  healthy.start(api, crowds.healthy.apiKey);
  const { meter } = server;
  for (let n = 1; n <= friendlyTurns; n += 1) {
    showProgress(`warm-up ${n} of ${friendlyTurns}`);
    await turn(crowds.friendly, quickEvents);
  }
  const healthyBefore = { p50Ms: healthy.delay.percentileMs(50), p99Ms: healthy.delay.percentileMs(99) };
  healthy.delay.reset();
  const warmPeakBytes = meter.peakBytes();
  const restingBytes = meter.residentBytes();
  meter.resetPeak();

  const startedAt = performance.now();
  const events: { session: string; eventId: string }[] = [];
  for (let n = 1; n <= turns; n += 1) {
    showProgress(`turn ${n} of ${turns}`);
    events.push(...(await turn(crowds.hostile, quickEvents)));
  }
  const seconds = (performance.now() - startedAt) / 1000;
  const hostilePeakBytes = meter.peakBytes();
  await healthy.stop();

  const tallies = await judgeAll(api, events, crowds, maxLateMs);
  const descriptorsLeft = await leftOver(server, descriptorsBefore);
  const isAlive = await isStillServing(server, api);
  await server.stop();
  const connections = await endReceivers();
  for (const tally of tallies) tally.connectionMs = connections[tally.title] ?? 0;
  return {
    webhooks: crowds.receiverOf.size,
    turns,
    seconds,
    attempts: tallies.reduce((sum, tally) => sum + tally.times, 0),
    tallies,
    leftOut: catalogue.leftOut,
    restingBytes,
    warmPeakBytes,
    hostilePeakBytes,
    healthy: {
      sent: healthy.sent,
      received: healthy.received,
      p50Ms: healthy.delay.percentileMs(50),
      p99Ms: healthy.delay.percentileMs(99),
      maxMs: healthy.delay.maxMs(),
      longestPauseMs: healthy.longestPauseMs,
    },
    healthyBefore,
    descriptorsLeft,
    isAlive,
    dataDir,
  };
}

/** `end` resolves with how long the longest connection to each receiver was, ms. */
async function startReceivers(): Promise<{ catalogue: Catalogue; end(): Promise<Record<string, number>> }> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "receivers.ts")], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  endWithUs(child);
  const lines = linesOf(child.stdout);
  return {
    catalogue: JSON.parse((await lines.next()).value ?? "") as Catalogue,
    async end() {
      await child.stdin.end();
      const { value = "{}" } = await lines.next();
      await child.exited;
      return JSON.parse(value) as Record<string, number>;
    },
  };
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n")) {
      yield text.slice(0, end);
      text = text.slice(end + 1);
    }
  }
  if (text !== "") yield text;
}

/** Slow receivers have several webhooks each, so one event is several attempts; quick ones have one, and get several events. */
function planTurns(times: number, { receiverOf }: Crowds): { turns: number; quickEvents: number } {
  const attempts = new Map<string, number>();
  for (const { title, group } of receiverOf.values()) {
    if (group !== "quick") attempts.set(title, (attempts.get(title) ?? 0) + 1);
  }
  const turns = attempts.size === 0 ? 1 : Math.ceil(times / Math.min(...attempts.values()));
  return { turns, quickEvents: Math.ceil(times / turns) };
}

/**
 * One turn: posts the events and resolves with them when each has been attempted everywhere and nothing is in flight. It
 * keeps to as many attempts at a time as there are webhooks: how connections are limited is another proof's matter.
 */
function createTurn(api: Api, healthy: Healthy) {
  let expected = 0;
  return async (crowds: Record<Group, Crowd>, quickEvents: number) => {
    const events: { session: string; eventId: string }[] = [];
    const post = async (group: Group) => {
      const { apiKey, session, urls } = crowds[group];
      if (urls.length === 0) return;
      const body = { payload: group === "unread" ? unreadPayload : payload };
      const { eventId } = await api<{ eventId: string }>("POST", "/v1/ingest", apiKey, body);
      events.push({ session, eventId });
      expected += urls.length;
    };
    await Promise.all([post("slow"), post("unread")]);
    for (let n = 0; n < quickEvents; n += 1) {
      while ((await outstanding()) + crowds.quick.urls.length > webhookCount) await Bun.sleep(pollMs);
      await post("quick");
      await Bun.sleep(quickEveryMs);
    }
    while ((await outstanding()) > 0) await Bun.sleep(pollMs);
    // A body may still be coming; one attempt to the healthy webhook may be under way.
    while ((await countersOf(api)).inFlight > 1) await Bun.sleep(pollMs);
    return events;
  };

  /** Attempts that are still to be made or under way, those to the healthy webhook aside. */
  async function outstanding(): Promise<number> {
    const { attempts } = await countersOf(api);
    // Read after it: so it is rather too high.
    return expected - (attempts - healthy.received);
  }
}

async function countersOf({ base }: Api): Promise<{ attempts: number; inFlight: number }> {
  const text = await (await fetch(`${base}/metrics`)).text();
  const sum = (pattern: RegExp) => [...text.matchAll(pattern)].reduce((total, [, value]) => total + Number(value), 0);
  return {
    attempts: sum(/^postrider_delivery_attempts_total\{[^}]*\} (\d+)$/gm),
    inFlight: sum(/^postrider_delivery_in_flight (\d+)$/gm),
  };
}

/** Holds every attempt of every event against what its receiver must come to. */
async function judgeAll(
  api: Api,
  events: readonly { session: string; eventId: string }[],
  { receiverOf }: Crowds,
  maxLateMs: number,
): Promise<Tally[]> {
  const tallies = new Map<string, Tally>();
  for (const { title, group, expected } of receiverOf.values()) {
    tallies.set(title, {
      title,
      group,
      wanted: wantedOf(expected, "").verdict,
      times: 0,
      longestMs: 0,
      connectionMs: 0,
      faults: [],
    });
  }
  for (const { session, eventId } of events) {
    const [records, attempts] = await Promise.all([
      api<RecordBody[]>("GET", `/v1/events/${eventId}`, session),
      api<AttemptBody[]>("GET", `/v1/events/${eventId}/attempts?size=1000`, session),
    ]);
    const recordOf = new Map(records.map((record) => [record.targetWebhook, record]));
    for (const attempt of attempts) {
      const receiver = receiverOf.get(attempt.targetWebhook);
      const record = recordOf.get(attempt.targetWebhook);
      const tally = receiver && tallies.get(receiver.title);
      if (receiver === undefined || record === undefined || tally === undefined) {
        throw new Error(`An attempt to ${attempt.targetWebhook}, which is no webhook of the event.`);
      }
      note(tally, receiver.expected, record, attempt, maxLateMs);
    }
    if (attempts.length !== records.length)
      throw new Error(`${eventId} has ${attempts.length} attempts for ${records.length} records.`);
  }
  return [...tallies.values()];
}

/** For so long the count has to stay the same: while a thread starts, which one does right away, 16 in reserve are released. */
const restMs = 500;

async function descriptorsAtRest({ meter }: Server): Promise<number> {
  for (let before = meter.descriptors(); ; before = meter.descriptors()) {
    await Bun.sleep(restMs);
    if (meter.descriptors() === before) return before;
  }
}

/** Kept connections live 4.5 s; ours for asking are among those counted. */
async function leftOver({ meter }: Server, before: number): Promise<number> {
  const ours = 16;
  const endMs = performance.now() + 10_000;
  for (;;) {
    const left = meter.descriptors() - before - ours;
    if (left <= 0 || performance.now() > endMs) return left;
    await Bun.sleep(pollMs);
  }
}

const isStillServing = async (server: Server, { base }: Api) =>
  server.isRunning() && (await fetch(`${base}/readyz`)).ok;
