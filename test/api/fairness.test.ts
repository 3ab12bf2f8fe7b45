import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { youngLimit } from "../../src/delivery/queue/admission.ts";
import { type Hooks, ingestOne, outcome, register, seedTenant, startHooks } from "../support/api-server.ts";
import { provenSections, useServer } from "./scenario.ts";
import type { Flood } from "./silent-accounts.ts";

provenSections.add("rules 8");

let hooks: Hooks;
let silent: SilentAccounts;
// Before the server's own: it waits for what is in flight.
afterAll(() => {
  hooks.stop();
  silent.stop();
});
// Nothing here is about the disk, which other tests keep busy: in memory where the system has a folder for it.
const memory = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
const server = useServer({
  dataDir: mkdtempSync(join(memory, "postrider-test-")),
  env: { POSTRIDER_RETRY_SCHEDULE: "1s,1s,1s" },
});
beforeAll(async () => {
  hooks = await startHooks();
  silent = await startSilentAccounts();
});

const deadWebhooks = 1000;
const eventsForEachDead = 2;
const perSecond = 20;
const seconds = 5;
const p99LimitMs = 250;

type SilentAccounts = Awaited<ReturnType<typeof startSilentAccounts>>;

async function startSilentAccounts() {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "silent-accounts.ts")], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await child.stdout.getReader().read();
  const url = new TextDecoder().decode(value).trim();
  return {
    webhook: (path: string) => `${url}/${path}`,
    async flood(flood: Flood): Promise<number[]> {
      const answer = await fetch(`${url}/flood`, { method: "POST", body: JSON.stringify(flood) });
      return (await answer.json()) as number[];
    },
    /** How many webhooks were called, as soon as so many were. */
    async called(least: number): Promise<number> {
      return (await (await fetch(`${url}/called?least=${least}`)).json()) as number;
    },
    stop: () => child.kill(),
  };
}

/**
 * A thousand accounts whose webhooks take the connection and never answer, two events for each; beside them one webhook
 * that answers and gets 20 events a second for 5 seconds from the moment that the others begin. Attempts may take their
 * 10 seconds; all over real sockets. Those accounts and their webhooks are a process of their own: what it takes to hold a
 * thousand connections and say nothing is not the server's delay.
 *
 * The same flood comes first with webhooks that answer at once: once for the server to get warm, as one that has just
 * started takes seconds for what then takes none, and once to compare with. A machine that is slow or shared delays both
 * alike, so there the silent ones may cost at most twice as much.
 */
test("webhooks that never answer delay nobody else", async () => {
  const besidePrompt = () => p99Beside((n) => silent.webhook(`prompt/${n}`)).finally(server().app.whenIdle);
  await besidePrompt();
  const prompt = await besidePrompt();
  const p99 = await p99Beside((n) => silent.webhook(`silent/${n}`));
  expect(p99).toBeLessThan(Math.max(p99LimitMs, 2 * prompt));
  // Otherwise it would prove nothing: more of them hang by then than there are places for young attempts.
  expect(await silent.called(0)).toBeGreaterThan(youngLimit);
  expect(await silent.called(deadWebhooks)).toBe(deadWebhooks);
}, 180_000);

/** From the request to the arrival, in ms, of a healthy account's events while a thousand others send. */
async function p99Beside(webhookOf: (n: number) => string): Promise<number> {
  const app = server();
  const owners = await Promise.all(
    Array.from({ length: deadWebhooks }, (_, n) => seedTenant(app, { webhooks: [webhookOf(n)] })),
  );
  const healthy = await app.account();
  const hook = hooks.hook(200);
  await register(healthy, hook.url);
  await outcome(healthy, await ingestOne(healthy));

  async function flood(): Promise<void> {
    const events = Array.from({ length: eventsForEachDead }, (_, n) => ({ payload: { n } }));
    const statuses = await silent.flood({ url: app.url, apiKeys: owners.map(({ apiKey }) => apiKey), events });
    expect(statuses).toEqual(Array(deadWebhooks).fill(202));
  }

  const sentAt = new Map<string, number>();
  async function load(): Promise<void> {
    const begin = performance.now();
    const sending: Promise<unknown>[] = [];
    for (let n = 0; n < perSecond * seconds; n += 1) {
      await Bun.sleep(Math.max(0, begin + (n * 1000) / perSecond - performance.now()));
      const at = performance.now();
      sending.push(ingestOne(healthy, { n }).then((eventId) => sentAt.set(eventId, at)));
    }
    await Promise.all(sending);
  }

  await Promise.all([flood(), load()]);
  const received = await hook.whenReceived(1 + perSecond * seconds);
  const delays = received.flatMap(({ headers, at }) => {
    const sent = sentAt.get(String(headers["service-event-id"]));
    return sent === undefined ? [] : [at - sent];
  });
  delays.sort((a, b) => a - b);
  expect(delays).toHaveLength(perSecond * seconds);
  return delays[Math.ceil(delays.length * 0.99) - 1] ?? Number.NaN;
}
