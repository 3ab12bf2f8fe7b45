import { expect, test } from "bun:test";
import { useServer } from "../api/scenario.ts";
import { until } from "../api/support.ts";
import { connectRaw, headOf } from "./raw-peer.ts";

/**
 * Clients that announce large bodies and do not send them: what the server holds for them has an end, and it keeps nobody
 * else out. `bun run abuse` measures the memory.
 */

const server = useServer();
const batchBytes = 5 * 2 ** 20;
/** With one more there would be more than 24 MiB. */
const fitting = 4;

test("an account that announces more than its share is asked to come back, and nobody else is", async () => {
  const [ada, bob] = [await server().account(), await server().account()];
  const batchOf = ({ apiKey }: { apiKey: string }) =>
    server().request("POST", "/v1/ingest/batch", { token: apiKey, body: '{"events":['.padEnd(batchBytes) });
  const head = { Authorization: `Bearer ${ada.apiKey}`, "Content-Length": String(batchBytes) };
  const peers = await Promise.all(Array.from({ length: fitting }, () => connectRaw(server().url)));
  for (const peer of peers) peer.write(`${headOf("POST", "/v1/ingest/batch", head)}\r\n{`);

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
