import { afterAll, beforeAll, expect, test } from "bun:test";
import { youngLimit } from "../../src/delivery/queue/admission.ts";
import { provenSections, useServer } from "./scenario.ts";
import { type Hooks, ingestOne, outcome, register, seedTenant, startHooks } from "./support.ts";

provenSections.add("decisions 8");

let hooks: Hooks;
// Before the server's own: it waits for what is in flight.
afterAll(() => hooks.stop());
const server = useServer({ env: { POSTRIDER_RETRY_SCHEDULE: "1s,1s,1s" } });
beforeAll(async () => {
  hooks = await startHooks();
});

const deadWebhooks = 1000;
const eventsForEachDead = 2;
const perSecond = 20;
const seconds = 5;
const p99LimitMs = 500;

/**
 * A thousand accounts whose webhooks take the connection and never answer, two events for each; beside them one webhook
 * that answers and gets 20 events a second for 5 seconds from the moment that the others begin. Attempts may take their
 * 10 seconds; all over real sockets, with receivers, load and server in one process.
 */
test("webhooks that never answer delay nobody else", async () => {
  const app = server();
  const dead = Array.from({ length: deadWebhooks }, () => hooks.hook(() => {}));
  const owners = await Promise.all(dead.map(({ url }) => seedTenant(app, { webhooks: [url] })));
  const healthy = await app.account();
  const hook = hooks.hook(200);
  await register(healthy, hook.url);
  await outcome(healthy, await ingestOne(healthy));

  async function flood(): Promise<void> {
    const events = Array.from({ length: eventsForEachDead }, (_, n) => ({ payload: { n } }));
    const queue = owners.values();
    const workers = Array.from({ length: 16 }, async () => {
      for (const { apiKey } of queue) {
        const answer = await app.request("POST", "/v1/ingest/batch", { token: apiKey, body: { events } });
        expect(answer.status).toBe(202);
      }
    });
    await Promise.all(workers);
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
  expect(delays[Math.ceil(delays.length * 0.99) - 1]).toBeLessThan(p99LimitMs);
  // Otherwise it would prove nothing: more of them hang by then than there are places for young attempts.
  expect(dead.filter((one) => one.received.length > 0).length).toBeGreaterThan(youngLimit);
  await Promise.all(dead.map((one) => one.whenReceived(1)));
}, 20_000);
