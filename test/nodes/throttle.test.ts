import { afterAll, beforeAll, expect, test } from "bun:test";
import { gate, type Hooks, ingestOne, outcome, startHooks, until } from "../support/api-server.ts";
import { describeWithPostgres } from "../support/postgres.ts";
import { shareAccount, usePair } from "./pair.ts";

describeWithPostgres("what a webhook may be told holds at every server:", () => {
  const pair = usePair();
  let hooks: Hooks;
  beforeAll(async () => {
    hooks = await startHooks();
  });
  afterAll(() => hooks.stop());

  test("a pause that is set at one stops the other, and its end lets both go on", async () => {
    const { atA, atB } = await shareAccount(pair());
    const held = gate();
    const hook = hooks.hook(held.answer);
    const list = (paused: boolean) => [{ webhook_url: hook.url, paused }];
    expect((await atA.put("/v1/tenants/webhooks", list(false))).status).toBe(200);
    const before = [await ingestOne(atA), await ingestOne(atB)];
    await until(
      () => hook.received.length,
      (count) => count >= 1,
    );
    expect((await atA.put("/v1/tenants/webhooks", list(true))).status).toBe(200);
    held.open();
    const during = [await ingestOne(atB), await ingestOne(atA)];
    await Promise.all([pair().a.app.whenIdle(), pair().b.app.whenIdle()]);
    const ids = () => new Set(hook.received.map(({ headers }) => headers["service-event-id"]));
    expect(during.some((id) => ids().has(id))).toBe(false);
    expect((await atB.put("/v1/tenants/webhooks", list(false))).status).toBe(200);
    for (const id of [...before, ...during]) expect((await outcome(atA, id)).state).toBe("DELIVERED");
  });
});
