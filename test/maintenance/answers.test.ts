import { describe, expect, test } from "bun:test";
import { unavailable } from "../../src/domain/errors.ts";
import { createAnswerPruner, keptAnswersOfWebhook } from "../../src/maintenance/answers.ts";
import type { KeptAnswersQuery } from "../../src/store/retention.ts";
import { createFakeClock } from "../support/fake-clock.ts";

/** Over a log of acknowledged attempts, of which a look takes seven. */
function setUp({ damagedTenant = null as number | null } = {}) {
  const clock = createFakeClock();
  const log: { tenantKey: number; eventSeq: number; key: number; webhookKey: number; hasBody: boolean }[] = [];
  const looks: KeptAnswersQuery[] = [];
  const pruner = createAnswerPruner({
    clock,
    store: {
      async keptAnswers(query) {
        looks.push(query);
        const looked = log.filter(({ key }) => key > (query.after?.key ?? 0)).slice(0, 7);
        return {
          attempts: looked.filter(({ hasBody }) => hasBody),
          lookedTo: looked.at(-1) ?? query.after,
          isMore: looked.length === 7,
        };
      },
      async forgetAnswers(tenantKey, attempts) {
        if (tenantKey === damagedTenant) throw unavailable("This cannot be read.", "storage_damaged");
        for (const { key } of attempts) {
          const found = log.find((one) => one.key === key && one.tenantKey === tenantKey);
          if (found) found.hasBody = false;
        }
      },
    },
  });
  return {
    clock,
    looks,
    pruner,
    answer(webhookKey: number, count: number) {
      for (let i = 0; i < count; i++) {
        const key = log.length + 1;
        log.push({ tenantKey: webhookKey % 3, eventSeq: key, key, webhookKey, hasBody: true });
      }
    },
    async run() {
      pruner.begin();
      while (await pruner.step());
    },
    /** Of each, with the first that is kept. */
    kept: (webhookKey: number) => {
      const bodies = log.filter((one) => one.webhookKey === webhookKey && one.hasBody);
      return [bodies.length, bodies[0]?.key];
    },
  };
}

describe("bodies of answers that acknowledged", () => {
  test("stay of the latest attempts of each webhook", async () => {
    const { answer, run, kept } = setUp();
    answer(1, keptAnswersOfWebhook + 30);
    answer(2, keptAnswersOfWebhook);
    answer(3, 1);
    await run();
    expect([kept(1), kept(2), kept(3)]).toEqual([
      [keptAnswersOfWebhook, 31],
      [keptAnswersOfWebhook, keptAnswersOfWebhook + 31],
      [1, 2 * keptAnswersOfWebhook + 31],
    ]);
    answer(1, 5);
    await run();
    expect(kept(1)).toEqual([keptAnswersOfWebhook, 36]);
  });

  test("of an account that cannot be read stay, and keep no others from going", async () => {
    const { answer, run, kept } = setUp({ damagedTenant: 1 });
    answer(1, keptAnswersOfWebhook + 30);
    answer(2, keptAnswersOfWebhook + 1);
    await run();
    expect([kept(1)[0], kept(2)[0]]).toEqual([keptAnswersOfWebhook + 30, keptAnswersOfWebhook]);
  });

  test("are looked for from where the last look ended, and a day later from the first attempt", async () => {
    const { answer, run, kept, looks, clock } = setUp();
    answer(1, 20);
    await run();
    looks.length = 0;
    await run();
    expect(looks.map(({ after }) => after?.key)).toEqual([20]);
    clock.advance(24 * 60 * 60_000);
    looks.length = 0;
    answer(1, keptAnswersOfWebhook);
    await run();
    expect(looks[0]?.after).toBeNull();
    expect(kept(1)).toEqual([keptAnswersOfWebhook, 21]);
  });

  test("stay while the rest of an answer may still come", async () => {
    const { run, looks, clock } = setUp();
    await run();
    expect(clock.now() - (looks[0]?.before ?? 0)).toBe(60_000);
  });
});
