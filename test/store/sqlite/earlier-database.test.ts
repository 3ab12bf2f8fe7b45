import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import type { DueDelivery } from "../../../src/domain/delivery.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { readAll, readAttempts } from "../../support/read-all.ts";
import { useSqlite } from "../../support/sqlite-store.ts";
import { bytes, latestKey, newTenant, settlementOf, untyped } from "../../support/store-factory.ts";

const sqlite = useSqlite();

describe("a database from before webhooks were forgotten", () => {
  test("loses the rows of removed webhooks that nothing names, in steps, and keeps the others", async () => {
    const clock = createFakeClock();
    const { store, path } = await sqlite.store({ clock });
    const tenant = await store.createTenant(newTenant({ urls: ["https://a.example/kept"] }), clock.now());
    const apiKeyId = await latestKey(store, tenant.key);
    const accept = () => store.acceptEvents({ tenantKey: tenant.key, apiKeyId, events: [untyped(bytes("{}"))] });
    for (let event = 0; event < 2_100; event += 700) {
      await store.acceptEvents({
        tenantKey: tenant.key,
        apiKeyId,
        events: Array.from({ length: 700 }, () => untyped(bytes("{}"))),
      });
    }
    await store.replaceWebhooks(
      tenant.key,
      { webhooks: [{ id: "wh_b", url: "https://b.example/kept", name: "" }], limit: 1 },
      clock.now(),
    );
    await accept();
    await store.replaceWebhooks(
      tenant.key,
      { webhooks: [{ id: "wh_c", url: "https://c.example/now", name: "" }], limit: 1 },
      clock.now(),
    );
    while (await store.failUndeliverable(1_000));
    const client = new Database(path, { strict: true });
    client.run("update webhook set used = null");
    client.run(
      `insert into webhook (id, tenant_key, url, name, position, created_at, removed_at, drained)
       select 'wh_' || value, ${tenant.key}, 'https://' || value || '.example/gone', '', 0, 1, 1, 1
       from json_each('[${Array.from({ length: 500 }, (_, n) => n)}]')`,
    );
    clock.advance(120_000);
    let steps = 0;
    while (await store.forgetWebhooks(clock.now(), 200)) steps += 1;
    expect(steps).toBeGreaterThan(5);
    const urls = client.query<{ url: string }, []>("select url from webhook order by key").all();
    expect(urls.map(({ url }) => url)).toEqual([
      "https://a.example/kept",
      "https://b.example/kept",
      "https://c.example/now",
    ]);
    // What is known now needs no other walk.
    expect(await store.forgetWebhooks(clock.now(), 200)).toBe(false);
    client.close();
  });
});

describe("a database from before failures had codes", () => {
  test("shows their sentence alone until the next attempt; attempts are known by their answer", async () => {
    const clock = createFakeClock();
    const { store, path } = await sqlite.store({ clock });
    const url = "https://a.example/hook";
    const tenant = await store.createTenant(newTenant({ urls: [url] }), clock.now());
    const apiKeyId = await latestKey(store, tenant.key);
    const event = { tenantKey: tenant.key, apiKeyId, events: [untyped(bytes("{}"))], roomFor: () => 1 };
    const accepted = await store.acceptEvents(event);
    const [delivery] = accepted.deliveries as [DueDelivery];
    await store.settle(settlementOf(delivery, "retry", clock.now()));
    const client = new Database(path, { strict: true });
    // As `0009_reason_codes` leaves the rows that it finds.
    client.run("update delivery set error_code = null, status_code = null");
    client.run("update attempt set error_code = null");
    client.close();

    const read = async () => {
      const records = await store.records(tenant.key, delivery.eventId);
      const [record] = records ? await readAll(records) : [];
      const log = (await readAttempts(store, tenant.key, delivery.eventId)).map((each) => [each.error, each.errorCode]);
      const [health] = await store.webhookHealth(tenant.key, { records: 9, walked: 9 });
      const { errorReason, errorCode, statusCode } = record ?? {};
      return { errorReason, errorCode, statusCode, log, lastErrorCode: health?.lastErrorCode };
    };
    const errorReason = `HTTP 503 from ${url}`;
    const log = [[errorReason, "http_status"]];
    const earlier = { errorReason, errorCode: null, statusCode: null, log, lastErrorCode: null };
    expect(await read()).toEqual(earlier);

    clock.advance(60_000);
    const [again] = (await store.claim(delivery, clock.now(), 1)).due as [DueDelivery];
    await store.settle(settlementOf(again, "failed", clock.now()));
    expect(await read()).toEqual({
      ...{ errorReason, errorCode: "http_status", statusCode: 503, lastErrorCode: "http_status" },
      log: [...earlier.log, [errorReason, "http_status"]],
    });
  });
});
