import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { youngLimit } from "../../src/delivery/queue/admission.ts";
import { type Hooks, ingestOne, outcome, register, seedTenant, startHooks } from "../support/api-server.ts";
import { createFastClock } from "../support/fast-clock.ts";
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
/** How much longer a second takes for the server than for the machine. */
const slowness = 10;
const server = useServer({
  clock: createFastClock(1 / slowness),
  env: { POSTRIDER_RETRY_SCHEDULE: "1s,1s,1s" },
});
beforeAll(async () => {
  hooks = await startHooks();
  silent = await startSilentAccounts();
});

const deadWebhooks = 1000;
const eventsForEachDead = 2;
/** By the server's clock: while the thousand begin, which it lets do so in three groups, each 250 ms after the other. */
const perSecond = 100;
const seconds = 1;
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
    webhook: (n: number) => `${url}/hook/${n}`,
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
 * that answers and gets 100 events from the moment that the others begin. All over real sockets. Those accounts and their
 * webhooks are a process of their own: what it takes to hold a thousand connections and say nothing is not the server's
 * delay.
 *
 * It happens in slow motion, so that what is held to its limit are the server's waits and not the speed of a machine that
 * does other things as well: an attempt may take 10 s of a clock that runs at a tenth of its speed. How fast it is at full
 * speed is measured by `bun run bench:fairness`.
 */
test("webhooks that never answer delay nobody else", async () => {
  const app = server();
  const owners = await Promise.all(
    Array.from({ length: deadWebhooks }, (_, n) => seedTenant(app, { webhooks: [silent.webhook(n)] })),
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
      await Bun.sleep(Math.max(0, begin + (slowness * n * 1000) / perSecond - performance.now()));
      const at = performance.now();
      sending.push(ingestOne(healthy, { n }).then((eventId) => sentAt.set(eventId, at)));
    }
    await Promise.all(sending);
  }

  await Promise.all([flood(), load()]);
  const received = await hook.whenReceived(1 + perSecond * seconds);
  const delays = received.flatMap(({ headers, at }) => {
    const sent = sentAt.get(String(headers["service-event-id"]));
    return sent === undefined ? [] : [(at - sent) / slowness];
  });
  delays.sort((a, b) => a - b);
  expect(delays).toHaveLength(perSecond * seconds);
  expect(delays[Math.ceil(delays.length * 0.99) - 1]).toBeLessThan(p99LimitMs);
  // Otherwise it would prove nothing: more of them hang by then than there are places for young attempts.
  expect(await silent.called(0)).toBeGreaterThan(youngLimit);
  expect(await silent.called(deadWebhooks)).toBe(deadWebhooks);
}, 120_000);
