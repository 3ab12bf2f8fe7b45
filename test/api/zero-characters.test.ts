import { beforeAll, expect, test } from "bun:test";
import type { TestAccount } from "../support/test-app.ts";
import { withSandbox } from "./customers.ts";
import { useServer } from "./scenario.ts";

/** PostgreSQL has no text with U+0000: what is looked for by such a text is not found, and no name has one, on either backend. */

const server = useServer({ env: withSandbox });
const zero = "%00";
const password = "Correct-horse-7!";
let ada: TestAccount;

beforeAll(async () => {
  ada = await server().account();
  await ada.ingest({ type: "a" });
});

const as = (who: string) => (who === "ada" ? { token: ada.jwt } : {});

test.each<[who: string, request: string, status: number, code: string | null]>([
  ["anybody", `GET /v1/tenants/${zero}/status`, 404, "tenant_not_found"],
  ["anybody", `GET /v1/tenants/${zero}/jwks.json`, 404, "tenant_not_found"],
  ["anybody", `GET /pay/${zero}`, 404, null],
  ["ada", `GET /v1/events?webhook=${zero}`, 200, null],
  ["ada", `GET /v1/events?webhook=${zero}&type=a&q=a`, 200, null],
  ["ada", `GET /v1/events?replay=${zero}`, 200, null],
  ["ada", `GET /v1/events?type=${zero}`, 200, null],
  ["ada", `GET /v1/events?q=${zero}`, 200, null],
  ["ada", `GET /v1/stats?webhook=${zero}`, 200, null],
  ["ada", `GET /v1/failures?webhook=${zero}`, 200, null],
  ["ada", `GET /v1/inbox?after=${zero}`, 200, null],
  ["ada", `GET /v1/events/${zero}`, 404, "event_not_found"],
  ["ada", `GET /v1/events/${zero}/delivery`, 404, "event_not_found"],
  ["ada", `GET /v1/events/replays/${zero}`, 404, "replay_not_found"],
  ["ada", `DELETE /v1/events/replays/${zero}`, 404, "replay_not_found"],
  ["ada", "GET /v1/stats?from=6100-01-01", 200, null],
  ["ada", "GET /v1/stats?from=6100-01-01&to=6100-01-02&bucket=1h", 200, null],
  ["ada", "GET /v1/stats?from=9999-12-31&to=9999-12-31&bucket=1h", 200, null],
  ["ada", "GET /v1/failures?from=6100-01-01", 200, null],
])("%s: %s is %i", async (who, request, status, code) => {
  const [method = "", path = ""] = request.split(" ");
  const answer = await server().request(method, path, as(who));
  expect([answer.status, answer.body?.code ?? null]).toEqual([status, code]);
});

test.each<[who: string, request: string, body: unknown, status: number, field: string | null]>([
  ["anybody", "POST /v1/tenants", { name: "a\0b" }, 400, "name"],
  [
    "anybody",
    "POST /v1/tenants",
    { webhooks: [{ webhook_url: "https://a.example", name: "\0" }] },
    400,
    "webhooks[0].name",
  ],
  ["anybody", "POST /v1/tenants/auth/login", { loginId: "a\0b@x.example", password }, 401, null],
  ["anybody", "POST /v1/tenants/auth/login", { loginId: "t\0", password }, 401, null],
  ["anybody", "POST /v1/tenants/auth/reset-password", { token: "\0", new_password: password }, 400, null],
  ["ada", "PUT /v1/tenants/webhooks", [{ webhook_url: "https://a.example", name: "\0" }], 400, "[0].name"],
  ["ada", "POST /v1/events/replays/all", { replayGroupId: "a\0b" }, 202, null],
  ["ada", "POST /v1/events/replays/all", { replayGroupId: "c", webhook: "\0" }, 404, null],
])("%s: %s with %j is %i", async (who, request, body, status, field) => {
  const [method = "", path = ""] = request.split(" ");
  const answer = await server().request(method, path, { ...as(who), body });
  expect([answer.status, answer.headers.get("Error-Field")]).toEqual([status, field ?? null]);
});

test("the log has no defect", () => {
  expect(server().log.filter((line) => /"level":"error"/.test(line))).toEqual([]);
});
