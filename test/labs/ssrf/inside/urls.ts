import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { resolvingInside, urlRows } from "../urls.ts";
import { plainPorts, startWorld, tlsPorts, type World } from "./world.ts";

/** Every row of the table of spellings, against the real server in public mode. */
let world: World;
beforeAll(async () => {
  world = await startWorld();
  // Whatever the name comes to: inside.
  world.zone = (_name, type) => (type === "A" ? ["127.0.0.1"] : ["::1"]);
});
afterAll(() => world.stop());

const atEveryPort = (vector: string) =>
  vector.includes("PORT") ? [...tlsPorts, ...plainPorts].map((port) => vector.replace("PORT", String(port))) : [vector];

describe("a URL with", () => {
  test.each(urlRows.map((row) => [row.trick, row] as const))("%s cannot be registered", async (_trick, row) => {
    for (const webhook_url of row.vectors.flatMap(atEveryPort)) {
      const answer = await world.account.put("/v1/tenants/webhooks", [{ webhook_url }]);
      expect([webhook_url, answer.status, answer.body.code]).toEqual([webhook_url, 400, "invalid_webhook_url"]);
      expect(answer.body.message).toMatch(row.says);
    }
  });

  test.each(urlRows.map((row) => [row.trick, row] as const))(
    "%s is not dialled if it is there",
    async (_trick, row) => {
      const urls = row.vectors.flatMap(atEveryPort);
      const records = await world.deliver(urls);
      for (const url of urls) {
        expect(records.get(url)).toMatchObject({ state: "FAILED", errorReason: `The address of ${url} is not public` });
      }
      expect(await world.takeDialled()).toEqual([]);
    },
  );
});

test("names of services that resolve to whatever is in them are registered, and not dialled", async () => {
  const urls = resolvingInside.map((host) => `https://${host}/`);
  for (const webhook_url of urls) {
    expect((await world.account.put("/v1/tenants/webhooks", [{ webhook_url }])).status).toBe(200);
  }
  const records = await world.deliver(urls);
  for (const url of urls) {
    expect(records.get(url)).toMatchObject({ state: "FAILED", errorReason: `The address of ${url} is not public` });
  }
  expect(await world.takeDialled()).toEqual([]);
});

test("the test of a webhook is judged like a delivery", async () => {
  const webhook_url = "https://127.0.0.1.nip.io:8443/";
  await world.account.put("/v1/tenants/webhooks", [{ webhook_url }]);
  const [{ id }] = (await world.account.get("/v1/tenants/webhooks")).body;
  const { body } = await world.account.post(`/v1/tenants/webhooks/${id}/test`);
  expect(body).toMatchObject({ statusCode: null, error: `The address of ${webhook_url} is not public` });
  expect(await world.takeDialled()).toEqual([]);
});
