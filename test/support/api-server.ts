import { createServer, request as httpRequest, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import { patienceMs } from "./patience.ts";
import { type SeededTenant, seedTenantIn } from "./seed-tenant.ts";
import type { Answer, TestAccount, TestApp } from "./test-app.ts";

export const eventIdPattern = /^evt_[0-9a-hjkmnp-tv-z]{26}$/;
export const isoPattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

// ---------------------------------------------------------------- webhooks

export interface Received {
  readonly headers: IncomingHttpHeaders;
  /** Alternating names and values, as received. */
  readonly rawHeaders: readonly string[];
  readonly method: string;
  readonly body: Buffer;
  readonly text: string;
  readonly at: number;
  /** Resolves when the sender has disconnected before it was answered. */
  readonly broken: Promise<void>;
}

/** A status, or whatever the function does with the response; doing nothing makes a webhook that never responds. */
export type HookAnswer = number | ((response: ServerResponse, nth: number, received: Received) => void);

export interface Hook {
  readonly url: string;
  readonly received: Received[];
  answer: HookAnswer;
  /** Resolves when `n` requests have arrived, with all bodies read. */
  whenReceived(n: number): Promise<Received[]>;
}

/** One listener with any number of webhooks, each at its own path. */
export async function startHooks() {
  const hooks = new Map<string, { hook: Hook; waiters: Set<() => void> }>();
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    const broken = new Promise<void>((resolve) => response.once("close", resolve));
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("error", () => {});
    incoming.on("end", () => {
      const [path = ""] = (incoming.url ?? "").split("?");
      const found = hooks.get(path);
      if (!found) return void response.writeHead(404).end();
      const body = Buffer.concat(chunks);
      const { headers, rawHeaders, method = "" } = incoming;
      const received = {
        headers,
        rawHeaders,
        method,
        body,
        text: body.toString("utf8"),
        at: performance.now(),
        broken,
      };
      found.hook.received.push(received);
      for (const wake of [...found.waiters]) wake();
      const { answer } = found.hook;
      if (typeof answer === "number") response.writeHead(answer).end();
      else answer(response, found.hook.received.length, received);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;

  return {
    port,
    hook(answer: HookAnswer = 200): Hook {
      const path = `/hook/${hooks.size + 1}`;
      const waiters = new Set<() => void>();
      const received: Received[] = [];
      const hook: Hook = {
        url: `http://127.0.0.1:${port}${path}`,
        received,
        answer,
        whenReceived: (n) =>
          new Promise((resolve) => {
            const look = () => {
              if (received.length < n) return;
              waiters.delete(look);
              resolve(received);
            };
            waiters.add(look);
            look();
          }),
      };
      hooks.set(path, { hook, waiters });
      return hook;
    },
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}

export type Hooks = Awaited<ReturnType<typeof startHooks>>;

/** An answer that waits until the gate is opened. */
export function gate(status = 200): { answer: HookAnswer; open(): void } {
  const waiting: ServerResponse[] = [];
  let opened = false;
  return {
    answer(response) {
      if (opened) response.writeHead(status).end();
      else waiting.push(response);
    },
    open() {
      opened = true;
      for (const response of waiting.splice(0)) response.writeHead(status).end();
    },
  };
}

/** A port on this machine where nothing listens. */
export async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Registers webhooks and asserts that it worked. */
export async function register(
  account: Pick<TestAccount, "put">,
  ...webhooks: (string | { readonly webhook_url: string; readonly [setting: string]: unknown })[]
): Promise<void> {
  const answer = await account.put(
    "/v1/tenants/webhooks",
    webhooks.map((webhook) => (typeof webhook === "string" ? { webhook_url: webhook } : webhook)),
  );
  if (answer.status !== 200) throw new Error(`The webhooks were not registered: ${answer.text}`);
}

// ---------------------------------------------------------------- requests

/** Sends the exact bytes of an ingestion body. */
export const ingestRaw = (
  server: TestApp,
  token: string,
  body: string | Uint8Array,
  headers?: Record<string, string>,
) => server.request("POST", "/v1/ingest", { token, body, ...(headers && { headers }) });

/** Ingests one event and returns its id. */
export async function ingestOne(account: TestAccount, payload: unknown = {}): Promise<string> {
  const { status, text, body } = await account.ingest(payload);
  if (status !== 202) throw new Error(`The event was not accepted: ${text}`);
  return body.eventId;
}

/** `n` events in one batch. */
export const batchOf = (server: TestApp, account: Pick<TestAccount, "apiKey">, n: number, payload: unknown = {}) =>
  server.request("POST", "/v1/ingest/batch", {
    token: account.apiKey,
    body: { events: Array.from({ length: n }, () => ({ payload })) },
  });

/** A request whose head alone says something about its length: chunked, or with headers that `fetch` refuses. */
export function rawRequest(
  server: TestApp,
  method: string,
  path: string,
  { headers = {}, chunks = [] }: { headers?: Record<string, string>; chunks?: readonly (string | Uint8Array)[] },
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(server.url);
    const outgoing = httpRequest({ hostname, port, path, method, headers, agent: false }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () => {
        const text = Buffer.concat(parts).toString("utf8");
        const found = new Headers();
        for (let i = 0; i < response.rawHeaders.length; i += 2) {
          found.append(response.rawHeaders[i] ?? "", response.rawHeaders[i + 1] ?? "");
        }
        resolve({
          status: response.statusCode ?? 0,
          headers: found,
          text,
          body: text === "" ? undefined : JSON.parse(text),
        });
      });
    });
    outgoing.on("error", reject);
    for (const chunk of chunks) outgoing.write(chunk);
    outgoing.end();
  });
}

/** Asks until the expected answer arrives, for what only HTTP can tell. */
export async function until<T>(ask: () => Promise<T> | T, holds: (value: T) => boolean): Promise<T> {
  const end = performance.now() + patienceMs;
  for (;;) {
    const value = await ask();
    if (holds(value)) return value;
    if (performance.now() > end) throw new Error(`It did not come true in ${patienceMs} ms: ${JSON.stringify(value)}`);
    await Bun.sleep(5);
  }
}

export type RecordBody = {
  eventId: string;
  tenantId: string;
  state: string;
  ingestionTimestamp: string;
  targetWebhook: string;
  errorReason: string | null;
  errorCode: string | null;
  statusCode: number | null;
  originalPayload: unknown;
  attempts: number;
  lastAttemptAt: string | null;
  lastDurationMs: number | null;
  nextAttemptAt: string | null;
  replayGroupId: string | null;
};

/** The records of an event once none of them is pending. */
export const settled = (account: TestAccount, eventId: string): Promise<RecordBody[]> =>
  until<RecordBody[]>(
    async () => (await account.get(`/v1/events/${eventId}`)).body,
    (records) => records.every(({ state }) => state !== "PENDING"),
  );

/** The only record of an event once it is settled. */
export async function outcome(account: TestAccount, eventId: string): Promise<RecordBody> {
  const [record, ...others] = await settled(account, eventId);
  if (!record || others.length > 0) throw new Error(`The event has ${others.length + (record ? 1 : 0)} records`);
  return record;
}

// ---------------------------------------------------------------- time

/**
 * Real time that can jump ahead; timers that fall due because of a jump run immediately, and the others move closer by as
 * much.
 */
export function createTravelClock(): Clock & { travel(ms: number): void } {
  let ahead = 0;
  const monotonicMs = () => systemClock.monotonicMs() + ahead;
  const timers = new Set<{ dueAt: number; fire(): void; arm(): void }>();
  return {
    now: () => systemClock.now() + ahead,
    monotonicMs,
    after(delayMs, callback) {
      let cancelReal = () => {};
      const timer = {
        dueAt: monotonicMs() + delayMs,
        fire() {
          if (!timers.delete(timer)) return;
          cancelReal();
          callback();
        },
        arm() {
          cancelReal();
          cancelReal = systemClock.after(timer.dueAt - monotonicMs(), timer.fire);
        },
      };
      timers.add(timer);
      timer.arm();
      return () => {
        timers.delete(timer);
        cancelReal();
      };
    },
    travel(ms) {
      ahead += ms;
      const now = monotonicMs();
      for (const timer of [...timers].sort((a, b) => a.dueAt - b.dueAt)) {
        if (timer.dueAt <= now) timer.fire();
        else timer.arm();
      }
    },
  };
}

// ---------------------------------------------------------------- accounts without a password

/** Puts an account straight into the store: no password is hashed, and it can have any standing. */
export const seedTenant = ({ app, dataDir }: TestApp, given: SeededTenant) =>
  seedTenantIn({ store: app.store, dataDir }, given);
