import { afterAll, beforeAll, expect, test } from "bun:test";
import { createRandom } from "../../../src/lib/random.ts";
import { fuzz, reportFuzz } from "../../support/fuzz.ts";
import { checkAnswer, type OpenApiDocument } from "../../support/openapi-check.ts";
import { abandon, exchange, type WireAnswer } from "../../support/raw-connection.ts";
import { startTestApp, type TestAccount, type TestApp } from "../../support/test-app.ts";
import { createWireCases, type WireCase } from "./wire/requests.ts";

/**
 * What no HTTP client would send, byte by byte: bodies in pieces and in other encodings, lengths that contradict each
 * other, requests hidden behind others, clients that go in between. `bun run fuzz wire --times N` opens N connections.
 */
const { times, seed, again } = fuzz("wire", 2_000);
const atOnce = 8;

let server: TestApp;
let account: TestAccount;
let document: OpenApiDocument;
beforeAll(async () => {
  server = await startTestApp();
  document = (await server.request("GET", "/openapi.json")).body;
  account = await server.account();
  await account.setTier("enterprise");
});
afterAll(() => server.stop());

/** What the listener itself says of what is no HTTP: it has no body. */
const bareStatuses = [400, 413, 431, 505];

/** @returns the ids of the events that were accepted */
function judge({ outcome, method, path, payloads }: WireCase, answers: readonly WireAnswer[]): string[] {
  if (outcome === "broken") {
    expect(answers.length).toBeLessThanOrEqual(1);
    for (const { status, bodyText } of answers) expect([bareStatuses.includes(status), bodyText]).toEqual([true, ""]);
    return [];
  }
  const [answer, ...more] = answers;
  if (!answer) throw new Error("There was no answer");
  expect(more).toEqual([]);
  checkAnswer(document, method, path, answer);
  if (outcome === "refused") {
    expect(answer.status).toBeWithin(400, 500);
    return [];
  }
  if (answer.status !== 202) throw new Error(`${answer.status} ${answer.bodyText}`);
  const { eventId, eventIds = [eventId] } = JSON.parse(answer.bodyText);
  expect(eventIds).toHaveLength(payloads.length);
  return eventIds;
}

test(`${times} connections of every kind (again: ${again})`, async () => {
  const nextCase = createWireCases(createRandom(seed), account);
  const accepted = new Map<string, string>();
  const outcomes = new Map<string, number>();
  let left = times;

  async function connectAgainAndAgain(): Promise<void> {
    while (left > 0) {
      left -= 1;
      const wireCase = nextCase();
      const { outcome, what, pieces, payloads } = wireCase;
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      if (outcome === "cut") {
        await abandon(server.url, pieces);
        continue;
      }
      try {
        const eventIds = judge(wireCase, await exchange(server.url, pieces));
        for (const [i, eventId] of eventIds.entries()) accepted.set(eventId, payloads[i] ?? "");
      } catch (error) {
        const sent = JSON.stringify(Buffer.concat(pieces).toString("latin1")).slice(0, 3_000);
        throw new Error(`${what}: ${error instanceof Error ? error.message : error}\n${sent}`);
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, connectAgainAndAgain));
  const told = [...outcomes].map(([outcome, count]) => `${count} ${outcome}`).join(", ");
  reportFuzz(`${times} connections: ${told}; ${accepted.size} events`);
  // Every kind has to have been there, or the rest proves less than it says.
  expect([...outcomes.keys()].sort()).toEqual(["accepted", "broken", "cut", "refused"]);

  // Not one more is stored, and those as they were sent.
  expect((await account.get("/v1/events?size=1")).body.total).toBe(accepted.size);
  const shown = new Set<string>();
  for (let page = 0; page * 1_000 < accepted.size; page += 1) {
    const { text, body } = await account.get(`/v1/events?size=1000&page=${page}`);
    for (const { eventId } of body.events) {
      shown.add(eventId);
      const at = text.indexOf('"originalPayload":', text.indexOf(eventId));
      const wanted = `"originalPayload":${accepted.get(eventId)},"attempts":`;
      if (!text.startsWith(wanted, at)) expect(text.slice(at, at + wanted.length)).toBe(wanted);
    }
  }
  expect(shown.size).toBe(accepted.size);
  expect(server.log.filter((line) => /"level":"(error|warn)"/.test(line))).toEqual([]);
  expect((await server.request("GET", "/readyz")).status).toBe(200);
}, 86_400_000);
