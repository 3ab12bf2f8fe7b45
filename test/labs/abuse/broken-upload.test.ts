import { beforeAll, expect, test } from "bun:test";
import { useServer } from "../../api/scenario.ts";
import { until } from "../../support/api-server.ts";
import { connectRaw, headOf } from "../../support/raw-peer.ts";
import type { TestAccount } from "../../support/test-app.ts";

/** Hazards, section 5, "Logs": whoever breaks off uploads must not be able to fill the log, or to raise an alarm. */

const server = useServer();
let ada: TestAccount;

beforeAll(async () => {
  ada = await server().account();
});

/** Requests to a path that were answered so, by any method, whether or not anybody heard it. */
async function answered(route: string, status: number): Promise<number> {
  const { text } = await server().request("GET", "/metrics");
  return text
    .split("\n")
    .filter((one) => one.includes(`route="${route}"`) && one.includes(`status="${status}"`) && one.includes("requests"))
    .reduce((sum, one) => sum + Number(one.split(" ").at(-1)), 0);
}

const declared = { "Content-Length": "1000" };
const chunked = { "Transfer-Encoding": "chunked" };

test.each([
  ["POST", "/v1/ingest", "apiKey", declared, '{"payload":{"secret":'],
  ["POST", "/v1/ingest", "apiKey", chunked, '15\r\n{"payload":{"secret":\r\n'],
  ["POST", "/v1/ingest/batch", "apiKey", declared, '{"events":['],
  ["POST", "/v1/tenants/auth/login", null, declared, '{"loginId":'],
  ["PUT", "/v1/tenants/webhooks", "jwt", declared, "[]"],
  ["PUT", "/v1/tenants/webhooks", "jwt", chunked, "2\r\n[]\r\n"],
] as const)("%s %s that ends amid its body changes nothing and is no defect in the log", async (...row) => {
  const [method, path, credential, length, begin] = row;
  const { jwt, apiKey } = ada;
  await ada.put("/v1/tenants/webhooks", [{ webhook_url: "https://example.com/hook" }]);
  const before = await answered(path, 400);
  const peer = await connectRaw(server().url);
  const authorization = credential === null ? {} : { Authorization: `Bearer ${{ jwt, apiKey }[credential]}` };
  peer.write(`${headOf(method, path, { ...authorization, ...length })}\r\n${begin}`);
  // An answer to another request shows that the first part has been read.
  await server().request("GET", "/healthz");
  peer.reset();

  await until(
    () => answered(path, 400),
    (count) => count === before + 1,
  );
  expect(server().log.filter((line) => line.includes("request.failed"))).toEqual([]);
  expect((await ada.get("/v1/events")).body.total).toBe(0);
  expect((await ada.get("/v1/tenants/webhooks")).body).toHaveLength(1);
});
