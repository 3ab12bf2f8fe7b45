import { expect, test } from "bun:test";
import { createOwnEvents, type OwnNews } from "../../src/delivery/own-events.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createMemoryLimits } from "../../src/store/memory-limits.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { registered } from "../support/tenant-state.ts";

/** Two servers that share a store, whose webhook 2 asks for news of webhook 1 if `isAsked`. */
function setUp(isAsked = true) {
  const clock = createFakeClock();
  const limits = createMemoryLimits(clock);
  const accepted: string[] = [];
  const taken: string[] = [];
  const server = () =>
    createOwnEvents({
      store: {
        webhooks: async () => [registered(1), registered(2, { eventTypes: isAsked ? ["postrider.*"] : null })],
        async acceptOwnEvent({ type }) {
          accepted.push(type);
          return { ingestedAt: 0, eventIds: [], deliveries: [], unowned: [], failed: [], repeated: false };
        },
      },
      limits: {
        take(counts, others) {
          taken.push(...counts.map(({ key }) => key));
          return limits.take(counts, others);
        },
      },
      wake() {},
      announce() {},
      log: silentLog,
    });
  const news = (type: OwnNews["type"]): OwnNews => ({
    type,
    about: { tenantKey: 1, webhookKey: 1 },
    tenantId: "t1",
    fields: {},
  });
  return { clock, accepted, taken, servers: [server(), server()] as const, news };
}

test("servers tell what happens to deliveries to a webhook once a minute between them", async () => {
  const { clock, accepted, servers, news } = setUp();
  const [one, two] = servers;
  const [exhausted, recovered] = [news("postrider.delivery.exhausted"), news("postrider.delivery.recovered")];
  expect([await one(exhausted), await two(exhausted)]).toEqual([true, false]);
  expect([await two(recovered), await one(recovered)]).toEqual([true, false]);
  clock.advance(60_000);
  expect([await two(exhausted), await one(exhausted)]).toEqual([true, false]);
  expect(accepted).toEqual([exhausted.type, recovered.type, exhausted.type]);
});

test("what else happens to a webhook is told each time, and what nobody asks for is not counted", async () => {
  const { accepted, taken, servers, news } = setUp();
  for (const tell of servers) expect(await tell(news("postrider.webhook.failing"))).toBe(true);
  expect([accepted.length, taken]).toEqual([2, []]);
  const unasked = setUp(false);
  for (const tell of unasked.servers) expect(await tell(unasked.news("postrider.delivery.exhausted"))).toBe(true);
  expect([unasked.accepted, unasked.taken]).toEqual([[], []]);
});
