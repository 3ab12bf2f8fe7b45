import { newId } from "../../src/lib/id.ts";
import type { TestAccount, TestApp } from "./test-app.ts";

/**
 * Registers webhooks without the checks of `PUT /v1/tenants/webhooks` and beyond the plan's limit, as a database from
 * before a rule would have them.
 */
export async function saveWebhooks(server: TestApp, account: TestAccount, urls: readonly string[]): Promise<void> {
  const { store } = server.app;
  const tenant = await store.findTenant(account.id);
  if (tenant === null) throw new Error("The account is gone.");
  const webhooks = urls.map((url) => ({ id: newId("wh"), url, name: "" }));
  await store.replaceWebhooks(tenant.key, { webhooks: webhooks, limit: urls.length }, Date.now());
}
