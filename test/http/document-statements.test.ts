import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { refusalCodes } from "../../src/http/refusal-codes.ts";
import type { OpenApiDocument } from "../support/openapi-check.ts";
import { startTestApp, type TestAccount, type TestApp } from "../support/test-app.ts";

/** What the document says in words, and schemas cannot hold. */

let server: TestApp;
let document: OpenApiDocument;
let account: TestAccount;

beforeAll(async () => {
  server = await startTestApp();
  document = (await server.request("GET", "/openapi.json")).body;
  account = await server.account();
  const body = { payload: { event_type: "order.paid" }, ordering_key: "order-1" };
  await server.request("POST", "/v1/ingest", { token: account.apiKey, body });
});

afterAll(() => server.stop());

function descriptionOf(schema: string, field: string): string {
  const { properties } = document.components.schemas[schema] as { properties: Record<string, { description: string }> };
  return properties[field]?.description ?? "";
}

test("every error that the document shows has a code that is answered", () => {
  const shown = Object.values(document.paths).flatMap((operations) =>
    Object.values(operations).flatMap(({ responses = {} }) =>
      Object.values(responses).flatMap(({ content }) => {
        const { code } = (content?.["application/json"]?.example ?? {}) as { code?: string };
        return code ?? [];
      }),
    ),
  );
  expect(shown.length).toBeGreaterThan(100);
  expect(shown.filter((code) => !refusalCodes.includes(code))).toEqual([]);
});

test("every time in an answer is one to generated clients, too", () => {
  const times = Object.entries(document.components.schemas).flatMap(([schema, { properties = {} }]) =>
    Object.entries(properties as Record<string, { format?: string; anyOf?: { format?: string }[] }>).flatMap(
      ([field, { format, anyOf }]) =>
        /(?:_at|_since|_used|_until|At|To|Timestamp)$/.test(field)
          ? [[`${schema}.${field}`, format ?? anyOf?.[0]?.format]]
          : [],
    ),
  );
  expect(times.length).toBeGreaterThan(20);
  expect(times.filter(([, format]) => format !== "date-time")).toEqual([]);
});

test("what a character is, which JSON Schema counts otherwise, is said once for all limits", async () => {
  const name = (emojis: number) => server.request("POST", "/v1/tenants", { body: { name: "😀".repeat(emojis) } });
  expect([(await name(100)).status, (await name(101)).status]).toEqual([201, 400]);
  const password = (emojis: number) =>
    server.request("POST", "/v1/tenants", { body: { password: `Aa1@${"😀".repeat(emojis)}` } });
  expect([(await password(4)).status, (await password(3)).status]).toEqual([201, 400]);
  expect(document.info.description).toMatch(/UTF-16 units.*eight characters of a password/);
});

test("what the operator may not do who views an account is said once for all endpoints", async () => {
  const { request, operatorToken } = server;
  const { body: view } = await request("POST", `/operator/tenants/${account.id}/view`, { token: operatorToken });
  for (const [method, path] of [
    ["DELETE", "/v1/tenants"],
    ["GET", "/v1/tenants/api-keys"],
    ["GET", "/v1/tenants/signing-secret"],
  ] as const) {
    const { status, body } = await request(method, path, { token: view.token });
    expect([path, status]).toEqual([path, 403]);
    expect(document.info.description).toContain(`\`${body.code}\``);
  }
});

describe("a list of records", () => {
  const given = {
    ...{ page: "0", size: "20", webhook: "wh_1", type: "order.paid", q: "order", code: "timeout", status: "503" },
    ...{ replay: "rpl_1", from: "2026-01-01", to: "9999-12-31", payload: "false", state: "FAILED" },
  };

  test("takes the parameters of this test", () => {
    const { parameters = [] } = document.paths["/v1/events"]?.get ?? {};
    expect(parameters.map(({ name }) => name).toSorted()).toEqual(Object.keys(given).toSorted());
  });

  test.each(Object.entries(given))("says totalIsExact with %s, or not, as the document does", async (name, value) => {
    const { body } = await account.get(`/v1/events?${name}=${value}`);
    expect("totalIsExact" in body).toBe(descriptionOf("EventRecordPage", "totalIsExact").includes(`\`${name}\``));
  });

  test.each(["true", "false", "start"])(
    "with payload=%s has the fields that the document promises",
    async (payload) => {
      const { body } = await account.get(`/v1/events?payload=${payload}`);
      const isAbsent = descriptionOf("EventRecord", "orderingKey").includes(`\`payload=${payload}\``);
      expect("orderingKey" in body.events[0]).toBe(!isAbsent);
    },
  );
});
