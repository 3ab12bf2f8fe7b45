import { beforeAll, expect, test } from "bun:test";
import { useServer } from "../../api/scenario.ts";
import { batchOf, until } from "../../support/api-server.ts";
import { checkAnswer } from "../../support/openapi-check.ts";
import { connectRaw, headOf, type RawPeer } from "../../support/raw-peer.ts";
import type { TestAccount } from "../../support/test-app.ts";

/**
 * Lists that are as large as they can be, and readers that do not take them. `bun run abuse` measures the memory of the
 * executable beside them; here it is that of the tests' own process, which holds the server.
 */

const patienceMs = 1_500;
const server = useServer({ readerPatienceMs: patienceMs });
/** Here answers stay under way, however slow the machine is. */
const patientServer = useServer();
const payload = { n: 12345, text: "é".repeat(120_000) };
const events = 120;
let ada: TestAccount;

beforeAll(async () => {
  ada = await server().account();
  await store(ada);
});

async function store(account: TestAccount, at = server): Promise<void> {
  for (let n = 0; n < events; n += 20) expect((await batchOf(at(), account, 20, payload)).status).toBe(202);
}

async function ask(path: string, account = ada, at = server): Promise<RawPeer> {
  const peer = await connectRaw(at().url);
  peer.socket.pause();
  peer.write(`${headOf("GET", path, { Authorization: `Bearer ${account.jwt}` })}\r\n`);
  return peer;
}

test("a page of large events comes whole, byte for byte, and as the document says", async () => {
  const answer = await ada.get("/v1/events?size=1000");
  expect(answer.headers.get("Content-Type")).toBe("application/json");
  expect(answer.headers.get("Cache-Control")).toBe("no-store");
  expect([answer.body.events.length, answer.body.total]).toEqual([events, events]);
  const text = JSON.stringify(payload);
  expect(answer.text.split(`"originalPayload":${text},"attempts":0`).length - 1).toBe(events);
  const document = (await server().request("GET", "/openapi.json")).body;
  checkAnswer(document, "GET", "/v1/events", { ...answer, bodyText: answer.text });
});

test("twelve readers that take nothing cost little memory, and then they are cut off", async () => {
  Bun.gc(true);
  const before = process.memoryUsage.rss();
  const peers = await Promise.all(Array.from({ length: 12 }, () => ask("/v1/events?size=1000")));
  let peak = 0;
  const closed = Promise.all(peers.map(({ closed }) => closed));
  // They hear of their end as soon as they read.
  await until(
    () => {
      peak = Math.max(peak, process.memoryUsage.rss());
      return server().log.filter((line) => line.includes("answer.cut_off")).length;
    },
    (cut) => cut === 12,
  );
  for (const { socket } of peers) socket.resume();
  await closed;
  // Each of the answers is 29 MB.
  expect(peak - before).toBeLessThan(150e6);
  expect((await ada.get("/v1/events?size=2")).status).toBe(200);
}, 120_000);

test("an account with too many large answers under way is asked to come back; small ones go out, and others' too", async () => {
  const [bob, carol] = [await patientServer().account(), await patientServer().account()];
  await store(carol, patientServer);
  expect((await batchOf(patientServer(), bob, 2, payload)).status).toBe(202);
  const large = "/v1/events?size=100";
  // Of 1.5 MiB each, of which 24 MiB have room: 16 stay, and one more whenever a request of ours has taken the place of one.
  const peers = await Promise.all(Array.from({ length: 16 }, () => ask(large, carol, patientServer)));
  const refused = await until(
    async () => {
      const answer = await carol.get(large);
      peers.push(await ask(large, carol, patientServer));
      return answer;
    },
    ({ status }) => status === 503,
  );
  expect([refused.body.code, refused.headers.get("Retry-After")]).toEqual(["too_many_answers", "1"]);
  expect((await carol.get(`${large}&payload=false`)).status).toBe(200);
  expect((await bob.get("/v1/events")).status).toBe(200);

  for (const peer of peers) peer.reset();
  await until(
    () => carol.get(large),
    ({ status }) => status === 200,
  );
}, 120_000);

test("an answer ends with its account", async () => {
  const eve = await server().account();
  // More than the kernel keeps for a connection.
  await store(eve);
  const peer = await ask("/v1/events?size=1000", eve);
  await until(
    () => ada.get("/v1/events?size=1"),
    ({ status }) => status === 200,
  );
  expect((await eve.delete("/v1/tenants")).status).toBe(204);
  peer.socket.resume();
  const received = await peer.closed;
  expect(received.endsWith("0\r\n\r\n")).toBe(false);
});

test("the log has no defect", () => {
  expect(server().log.filter((line) => /"level":"(error|warn)"/.test(line))).toEqual([]);
});
