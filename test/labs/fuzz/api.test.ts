import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createTravelClock } from "../../support/api-server.ts";
import { fuzz, reportFuzz } from "../../support/fuzz.ts";
import { checkAnswer, type OpenApiDocument } from "../../support/openapi-check.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";
import { startTestApp, type TestApp } from "../../support/test-app.ts";
import { checkVerdict } from "./api/judge.ts";
import { type FuzzRequest, requestsOf } from "./api/requests.ts";
import { createWorld, type FuzzWorld } from "./api/world.ts";

/**
 * Every operation of the published document gets requests that are right, nearly right, and wrong in every way. No answer
 * is a failure of the server or one that the document does not describe. `bun run fuzz api --times N` sends N to each.
 */
const { times, seed, again } = fuzz("api", 100);

const receiver: Receiver = startReceiver({
  answer: ({ path }) => new Response(null, { status: path.endsWith("/gone") ? 410 : 204 }),
});
const clock = createTravelClock();
const server: TestApp = await startTestApp({
  clock,
  env: {
    POSTRIDER_RETRY_SCHEDULE: "1ms",
    POSTRIDER_PAYMENTS: "sandbox",
    // Nobody is there: mails wait.
    POSTRIDER_SMTP_URL: "smtp://127.0.0.1:1",
    POSTRIDER_MAIL_FROM: "relay@example.com",
  },
});
const document: OpenApiDocument = (await server.request("GET", "/openapi.json")).body;
let world: FuzzWorld;
beforeAll(async () => {
  world = await createWorld(server, receiver.url, clock.now);
});
afterAll(async () => {
  await server.stop();
  await receiver.stop();
});

/** What it takes is nowhere but in a mail. */
const byMailAlone = "POST /v1/tenants/auth/reset-password";

const allStatuses: Map<number, number>[] = [];
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({
    name: `${method.toUpperCase()} ${path}`,
    method: method.toUpperCase(),
    path,
    operation,
  })),
);

async function send(method: string, name: string, takesApiKey: boolean, request: FuzzRequest) {
  const token = await world.tokenFor(name, request.token, takesApiKey);
  const response = await fetch(`${server.url}${request.path}`, {
    method,
    redirect: "manual",
    headers: {
      ...(token !== null && { Authorization: `Bearer ${token}` }),
      ...(request.body !== undefined && { "Content-Type": "application/json" }),
      ...request.headers,
    },
    ...(request.body !== undefined && method !== "GET" && { body: request.body }),
  });
  const isStream = response.headers.get("content-type") === "text/event-stream";
  if (isStream) await response.body?.cancel();
  return { status: response.status, headers: response.headers, bodyText: isStream ? "" : await response.text() };
}

/** As the router reads it: dots lead up, and one slash at the end counts for nothing. */
const routeOf = (path: string) => new URL(path, server.url).pathname.replace(/(?<=.)\/$/, "");

type Sent = Awaited<ReturnType<typeof send>>;

function checkError({ status, headers, bodyText }: Sent): void {
  const { message, code, ...rest } = JSON.parse(bodyText);
  expect([rest, typeof message]).toEqual([{}, "string"]);
  expect(code).toMatch(/^[a-z]+(_[a-z0-9]+)*$/);
  expect(message.length).toBeWithin(10, 400);
  expect(message).not.toMatch(/undefined|\[object|node_modules|\.ts\b|SQLITE|valibot|at position/);
  for (const secret of world.secrets) expect(bodyText).not.toContain(secret);
  if (status === 429 || status === 503) expect(headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
}

describe(`requests of every kind (again: ${again})`, () => {
  test("there is something to send them to", () => {
    expect(operations.length).toBeGreaterThan(40);
  });

  test.each(operations)(
    "$name",
    async ({ name, method, path, operation }) => {
      const takesApiKey = JSON.stringify(operation.security).includes("apiKey");
      const statuses = new Map<number, number>();
      allStatuses.push(statuses);
      const isAnsweredRightly = fc.asyncProperty(
        requestsOf(document, path, operation, world.known),
        async (request) => {
          const answer = await send(method, name, takesApiKey, request);
          statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
          expect(answer.status === 503 ? "declared" : answer.status).not.toBeWithin(500, 600);
          const route = routeOf(request.path);
          checkAnswer(document, method, route, answer);
          checkVerdict(document, operation, request, { method, path: route, status: answer.status });
          if (answer.status >= 400) checkError(answer);
        },
      );
      const hasSucceeded = () => [...statuses.keys()].some((status) => status < 300);
      // A request has to be right in everything to come behind the first checks. All of one hundred may be wrong in
      // something by chance; ten times as many are not.
      for (let round = 0; round === 0 || (round < 10 && !hasSucceeded()); round++) {
        // Past the limits that were met before.
        clock.travel(16 * 60_000);
        await fc.assert(isAnsweredRightly, { numRuns: times, seed: seed + round });
      }
      expect(hasSucceeded()).toBe(name !== byMailAlone);
    },
    86_400_000,
  );

  afterAll(() => {
    const sums = new Map<number, number>();
    for (const [status, count] of allStatuses.flatMap((statuses) => [...statuses])) {
      sums.set(status, (sums.get(status) ?? 0) + count);
    }
    const total = [...sums.values()].reduce((sum, count) => sum + count, 0);
    const told = [...sums].sort(([a], [b]) => a - b).map(([status, count]) => `${count} × ${status}`);
    reportFuzz(`${total} requests to ${operations.length} operations: ${told.join(", ")}`);
  });

  test("the server has failed on none of them, and takes events as before", async () => {
    expect(server.log.filter((line) => line.includes('"request.failed"'))).toEqual([]);
    expect((await server.request("GET", "/readyz")).status).toBe(200);
    clock.travel(16 * 60_000);
    const account = await server.account();
    expect((await account.ingest({})).status).toBe(202);
  });
});
