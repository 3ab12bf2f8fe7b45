import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { sliceEvent } from "../../../src/events/payload.ts";
import { createRandom } from "../../../src/lib/random.ts";
import { fuzz, reportFuzz } from "../../support/fuzz.ts";
import { createJsonTexts, deepestPayload } from "../../support/json-text.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";
import { startTestApp, type TestAccount, type TestApp } from "../../support/test-app.ts";
import { createVerifier, type Verifier } from "./bytes/verifier.ts";

/**
 * Byte fidelity (rules, section 6): the payload is stored, shown and delivered as the very bytes that were sent.
 * All texts go through the slice and one in five through the whole server; with `bun run fuzz bytes --times N` all of both.
 */
const { times, seed, again } = fuzz("bytes", 50_000);
const { times: throughServer } = fuzz("bytes", 10_000);

const inRound = 10_000;
const inBatch = 500;
/** Of so many texts one comes alone, and is asked for alone. */
const oneIn = 50;

const encode = (text: string) => Buffer.from(text, "utf8");

describe(`random JSON texts (again: ${again})`, () => {
  test(`${times} texts come out of the slice as the bytes that went in`, () => {
    const random = createRandom(seed);
    const { object, member, space } = createJsonTexts(random);
    for (let n = 0; n < times; n += 1) {
      const payload = object();
      const key = random.pick(['"payload"', '"payload"', '"p\\u0061yload"', '"\\u0070ayl\\u006Fad"']);
      const members = [`${key}${space()}:${space()}${payload}${space()}`];
      if (random.chance(0.3)) members.unshift(member());
      if (random.chance(0.3)) members.push(member());
      const body = `${space()}{${space()}${members.join(`,${space()}`)}}${space()}`;
      const sliced = Buffer.from(sliceEvent(encode(body)).payload);
      if (!sliced.equals(encode(payload))) expect(sliced.toString()).toBe(payload);
      // What is no JSON to everybody else would prove nothing.
      JSON.parse(body);
    }
  });

  test("64 levels pass and 65 do not", () => {
    const { nested } = createJsonTexts(createRandom(seed));
    const bodyOf = (levels: number) => encode(`{"payload":${nested(levels)}}`);
    for (let n = 0; n < 500; n += 1) {
      expect(() => sliceEvent(bodyOf(deepestPayload))).not.toThrow();
      expect(() => sliceEvent(bodyOf(deepestPayload + 1))).toThrow("nested deeper than 64 levels");
    }
  });
});

describe(`through the whole server (again: ${again})`, () => {
  let server: TestApp;
  let account: TestAccount;
  let verifier: Verifier;
  beforeAll(async () => {
    server = await startTestApp({ env: { POSTRIDER_LOG_LEVEL: "error", POSTRIDER_WEBHOOK_CONCURRENCY: "64" } });
    account = await server.account();
    await account.setTier("enterprise");
    verifier = await createVerifier(server, account);
  });
  afterAll(() => server.stop());

  /** @returns the event ids of the texts, in their order */
  async function send(payloads: readonly string[], space: () => string): Promise<string[]> {
    const bodies = payloads.map((payload) => `${space()}{"payload":${space()}${payload}${space()}}${space()}`);
    const alone = bodies.length / oneIn;
    const post = async (path: string, body: string) => {
      const answer = await server.request("POST", path, { token: account.apiKey, body: encode(body) });
      if (answer.status !== 202) throw new Error(`Not accepted: ${answer.text}\n${body.slice(0, 2_000)}`);
      return answer.body;
    };
    const singles = bodies.slice(0, alone).map(async (body) => (await post("/v1/ingest", body)).eventId);
    const batches = [];
    for (let at = alone; at < bodies.length; at += inBatch) {
      const events = bodies.slice(at, at + inBatch).join(",");
      batches.push(post("/v1/ingest/batch", `{"events":[${events}]}`).then(({ eventIds }) => eventIds));
    }
    return [...(await Promise.all(singles)), ...(await Promise.all(batches)).flat()];
  }

  function checkDeliveries({ requests }: Receiver, sent: ReadonlyMap<string, string>): void {
    const delivered = new Set<string>();
    for (const request of requests) {
      const eventId = request.headers.get("service-event-id") ?? "";
      delivered.add(eventId);
      const head = `{"eventId":"${eventId}","tenantId":"${account.id}","ingestionTimestamp":"`;
      const timestamp = request.body.toString("latin1", head.length, head.length + 24);
      const wanted = encode(`${head}${timestamp}","payload":${sent.get(eventId)}}`);
      if (!request.body.equals(wanted)) expect(request.body.toString()).toBe(wanted.toString());
      verifier.check(request);
    }
    expect([delivered.size, requests.length]).toEqual([sent.size, sent.size]);
  }

  /** The answer's bytes are looked at: whatever parses them makes 1 of `1.0`. */
  function checkShown(text: string, eventId: string, from: number, payload: string | undefined): number {
    const at = text.indexOf('"originalPayload":', text.indexOf(`"eventId":"${eventId}"`, from));
    const shown = `"originalPayload":${payload},"attempts":1`;
    if (!text.startsWith(shown, at)) expect(text.slice(at, at + shown.length)).toBe(shown);
    return at + shown.length;
  }

  async function checkLists(sent: ReadonlyMap<string, string>): Promise<void> {
    let seen = 0;
    for (let page = 0; seen < sent.size; page += 1) {
      const { text, body } = await account.get(`/v1/events?size=1000&page=${page}`);
      let at = 0;
      for (const { eventId } of body.events.slice(0, sent.size - seen)) {
        at = checkShown(text, eventId, at, sent.get(eventId));
        seen += 1;
      }
    }
    const ids = [...sent.keys()].filter((_, i) => i % oneIn === 0);
    for (const id of ids) checkShown((await account.get(`/v1/events/${id}`)).text, id, 0, sent.get(id));
  }

  test(`${throughServer} texts are stored, shown, delivered and signed as they were sent`, async () => {
    const { object, space } = createJsonTexts(createRandom(seed + 1));
    for (let left = throughServer; left > 0; left -= inRound) {
      const receiver = startReceiver();
      await account.put("/v1/tenants/webhooks", [{ webhook_url: `${receiver.url}/hook` }]);
      const payloads = Array.from({ length: Math.min(left, inRound) }, object);
      const eventIds = await send(payloads, space);
      const sent = new Map(eventIds.map((eventId, i) => [eventId, payloads[i] ?? ""]));
      await receiver.waitFor(sent.size);
      await server.app.whenIdle();
      checkDeliveries(receiver, sent);
      await checkLists(sent);
      await receiver.stop();
    }
    reportFuzz(`${times} texts sliced, ${throughServer} delivered and shown, three signatures each`);
  }, 86_400_000);
});
