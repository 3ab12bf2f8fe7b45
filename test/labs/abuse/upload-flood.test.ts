import { expect, test } from "bun:test";
import { useServer } from "../../api/scenario.ts";
import { until } from "../../support/api-server.ts";
import { connectRaw, headOf, statusOf } from "../../support/raw-peer.ts";

/**
 * Clients that announce large bodies and do not send them: what the server holds for them has an end, and it keeps nobody
 * else out. `bun run abuse` measures the memory.
 */

const server = useServer();
const batchBytes = 5 * 2 ** 20;
const beyond = { "Content-Length": "7000000", Connection: "close" };

/** How many of each fill the 24 MiB of one account so far that no batch fits in. */
test.each([
  ["large bodies", 4, { "Content-Length": String(batchBytes) }],
  ["bodies that are too large, before it ends the connection,", 48, beyond],
] as const)("an account that announces %s is asked to come back, and nobody else is", async (_, count, fields) => {
  const [ada, bob] = [await server().account(), await server().account()];
  const batchOf = ({ apiKey }: { apiKey: string }) =>
    server().request("POST", "/v1/ingest/batch", { token: apiKey, body: '{"events":['.padEnd(batchBytes) });
  const head = headOf("POST", "/v1/ingest/batch", { Authorization: `Bearer ${ada.apiKey}`, ...fields });
  const peers = await Promise.all(Array.from({ length: count }, () => connectRaw(server().url)));
  for (const peer of peers) peer.write(`${head}\r\n{`);

  const refused = await until(
    () => batchOf(ada),
    ({ status }) => status === 503,
  );
  expect([refused.body.code, refused.headers.get("Retry-After")]).toEqual(["too_many_bodies", "1"]);
  expect((await ada.ingest({ small: "x".repeat(15_000) })).status).toBe(202);
  expect((await bob.ingest({ large: "x".repeat(200_000) })).status).toBe(202);
  expect((await batchOf(bob)).status).toBe(400);

  for (const peer of peers) peer.reset();
  await until(
    () => batchOf(ada),
    ({ status }) => status === 400,
  );
  expect(server().log.filter((line) => /"level":"(error|warn)"/.test(line))).toEqual([]);
});

test("an account that has no room left learns all the same that a body is too large (rules, section 3)", async () => {
  const { apiKey } = await server().account();
  const head = headOf("POST", "/v1/ingest/batch", { Authorization: `Bearer ${apiKey}`, ...beyond });
  const peers = await Promise.all(Array.from({ length: 50 }, () => connectRaw(server().url)));
  for (const peer of peers) peer.write(`${head}\r\n`);
  // 48 have room to be read to their end, and are waited for.
  const answers = await until(
    () => Promise.resolve(peers.map(({ received }) => received()).filter((received) => received !== "")),
    (received) => received.length === 2,
  );
  expect(answers.map(statusOf)).toEqual([413, 413]);
  for (const peer of peers) peer.reset();
});
