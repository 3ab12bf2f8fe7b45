import { expect, test } from "bun:test";
import { cards, subscribe, withSandbox } from "../api/customers.ts";
import { until } from "../support/api-server.ts";
import { describeWithPostgres, usePostgres } from "../support/postgres.ts";
import { startTestApp, type TestApp } from "../support/test-app.ts";
import { asOperator, sharedSecrets } from "./pair.ts";

describeWithPostgres("one of two servers that bills nobody", () => {
  const postgres = usePostgres();

  async function start(url: string, name: string, more: Record<string, string> = {}): Promise<TestApp> {
    const env = { POSTRIDER_DATABASE_URL: url, POSTRIDER_NODE_NAME: name, ...withSandbox, ...more };
    const server = await startTestApp({ env, secrets: sharedSecrets, durability: "waived" });
    postgres.cleanUpFirst(() => server.stop());
    return server;
  }

  const isBilling = async (server: TestApp, name: string): Promise<boolean> => {
    const { nodes } = (await asOperator(server, "GET", "/nodes")).body;
    return nodes.some((node: { name: string; jobs: string[] }) => node.name === name && node.jobs.includes("biller"));
  };

  test.each([
    ["paused for charges", { POSTRIDER_PAUSED: "charges" }],
    ["without payments", { POSTRIDER_PAYMENTS: "off" }],
  ])("leaves that to the other, although it was there first: %s", async (_, env) => {
    const url = await postgres.migrated();
    const first = await start(url, "first", env);
    const second = await start(url, "second");
    const customer = await subscribe(second, cards.good);
    expect(await customer.status()).toBe("active");
    expect(await isBilling(first, "second")).toBe(true);
  });

  test("leaves the last charge of an account that is deleted through it to the other", async () => {
    const url = await postgres.migrated();
    const first = await start(url, "first", { POSTRIDER_PAYMENTS: "off" });
    const second = await start(url, "second");
    const customer = await subscribe(second, cards.good);
    expect(await customer.status()).toBe("active");
    await until(() => isBilling(first, "second"), Boolean);
    expect((await asOperator(first, "DELETE", `/tenants/${customer.id}`)).status).toBe(204);
    const pool = postgres.pool(url, { size: 1 });
    const closing = "select state from charge where kind = 'closing' and state = 'succeeded'";
    await until(
      () => pool.read(closing, []),
      ({ length }) => length === 1,
    );
  });

  test("bills everybody when it is resumed and the other is gone", async () => {
    const url = await postgres.migrated();
    const first = await start(url, "first", { POSTRIDER_PAUSED: "charges" });
    const second = await start(url, "second", { POSTRIDER_PAUSED: "charges" });
    expect(await isBilling(first, "first")).toBe(false);
    // It has all the other jobs, and with them more than its share.
    expect((await asOperator(first, "POST", "/resume", { what: ["charges"] })).status).toBe(200);
    await until(() => isBilling(second, "first"), Boolean);
    const customer = await subscribe(first, cards.good);
    expect(await customer.status()).toBe("active");
    await asOperator(second, "POST", "/resume", { what: ["charges"] });
    await first.app.stop();
    await until(() => isBilling(second, "second"), Boolean);
    await subscribe(second, cards.good);
  });
});
