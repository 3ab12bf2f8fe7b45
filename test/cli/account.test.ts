import { afterAll, expect, test } from "bun:test";
import { once } from "node:events";
import net from "node:net";
import { type Account, withAccount } from "../../src/cli/client/account.ts";
import { closedPort, createTravelClock } from "../support/api-server.ts";
import { createSelfSigned } from "../support/certificates.ts";
import { type Receiver, type ReceiverOptions, startReceiver } from "../support/receiver.ts";
import { createScriptedIo } from "../support/scripted-io.ts";

const receivers: Receiver[] = [];
afterAll(async () => {
  await Promise.all(receivers.map((receiver) => receiver.stop()));
});

function receive(answer: NonNullable<ReceiverOptions["answer"]>): Receiver {
  const receiver = startReceiver({
    answer: (request) => (request.path === "/v1/tenants/me" ? Response.json({ tenant_id: "t1" }) : answer(request)),
  });
  receivers.push(receiver);
  return receiver;
}

function begin(url: string, work: (account: Account) => Promise<number>) {
  const clock = createTravelClock();
  const { io, err, when, interrupt } = createScriptedIo({ env: { POSTRIDER_URL: url, POSTRIDER_TOKEN: "x" } });
  const ended = withAccount({ io, clock, flags: new Map() }, work);
  ended.catch(() => {});
  return { err, when, interrupt, clock, whenEnded: () => ended };
}

const travelling = <T>({ clock }: ReturnType<typeof begin>, ended: Promise<T>): Promise<T> => {
  const timer = setInterval(() => clock.travel(1_000), 20);
  return ended.finally(() => clearInterval(timer));
};

test("a server that is away is waited for half a minute", async () => {
  const url = `http://127.0.0.1:${await closedPort()}`;
  const begun = begin(url, async () => 0);
  const error = await travelling(begun, begun.whenEnded()).catch((reason: Error) => reason);
  expect(error).toMatchObject({
    name: "StartupError",
    message: `${url} cannot be reached (connection refused); gave up after 30 s. Try: --server with the address of your server.`,
  });
  expect(begun.err).toEqual([`${url} cannot be reached (connection refused). Retrying for 30 s.`]);
});

test("an address of http where the server has TLS is told of at once", async () => {
  const { cert, key } = createSelfSigned({ hosts: ["localhost"] });
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, tls: { cert, key }, fetch: () => new Response() });
  const begun = begin(`http://127.0.0.1:${server.port}`, async () => 0);
  await expect(begun.whenEnded()).rejects.toThrow(
    `http://127.0.0.1:${server.port} closes the connection, and answers by https. Try: --server https://127.0.0.1:${server.port}`,
  );
  expect(begun.err).toEqual([]);
  await server.stop(true);
});

test("a server that hangs up for another reason is waited for", async () => {
  const server = net.createServer((socket) => socket.destroy()).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as net.AddressInfo;
  const begun = begin(`http://127.0.0.1:${port}`, async () => 0);
  await expect(travelling(begun, begun.whenEnded())).rejects.toThrow(
    `http://127.0.0.1:${port} cannot be reached (connection closed); gave up after 30 s.`,
  );
  server.close();
});

test("an answer that means not now is asked for again", async () => {
  const answers = [503, 502, 200];
  const server = receive(() => new Response("{}", { status: answers.shift() ?? 500 }));
  const begun = begin(server.url, async ({ call }) => (await call("GET", "/v1/events")).status);
  expect(await travelling(begun, begun.whenEnded())).toBe(200);
  expect(begun.err).toHaveLength(2);
});

const tooManyFailures = "Too many failed logins; retry after the number of seconds in Retry-After.";

test.each([
  ["a lock of fifteen minutes", 429, tooManyFailures, "900", "Too many failed logins. Try: again in 15 min."],
  ["a proxy's limit of an hour", 429, null, "3600", "{url} answered 429. Try: again in 1 h."],
  ["an upgrade", 503, "The server is busy.", "31", "The server is busy. Try: again in 31 s."],
])("%s is not waited for", async (_, status, message, retryAfter, expected) => {
  const server = receive(() => Response.json({ message }, { status, headers: { "Retry-After": retryAfter } }));
  const begun = begin(server.url, async ({ call }) => (await call("GET", "/v1/events")).status);
  await expect(begun.whenEnded()).rejects.toThrow(expected.replace("{url}", server.url));
  expect(begun.err).toEqual([]);
});

test.each([
  ["says so as Postrider does", 503, "The server is busy.", "answered 503 (The server is busy.)", "later."],
  ["limits requests", 429, null, "answered 429", "later."],
  ["is a gateway", 502, null, "answered 502", "--server with the address of your server."],
])("an address that %s is doubted only where it may be wrong", async (_, status, message, reason, remedy) => {
  const server = receive(() => Response.json({ message }, { status }));
  const begun = begin(server.url, async ({ call }) => (await call("GET", "/v1/events")).status);
  await expect(travelling(begun, begun.whenEnded())).rejects.toThrow(
    `${server.url} ${reason}; gave up after 30 s. Try: ${remedy}`,
  );
});

test("Ctrl+C ends the waiting, with the exit code of the signal", async () => {
  const server = receive(() => new Response("{}", { status: 503 }));
  const begun = begin(server.url, async ({ callPatiently }) => (await callPatiently("GET", "/v1/events")).status);
  await begun.when(begun.err, (line) => line.endsWith("Retrying until it works."));
  begun.interrupt();
  expect(await begun.whenEnded()).toBe(130);
});

test.each([
  ["Postrider's 503", 503, { message: "The server is busy.", code: "busy" }, 202, 2],
  ["a proxy's 503", 503, {}, null, 1],
  ["a proxy's 503 with words of its own", 503, { message: "Bad gateway." }, null, 1],
  ["a 502", 502, {}, null, 1],
  ["a rate limit", 429, {}, 429, 1],
] as const)("what must not happen twice, after %s", async (_, status, body, expected, times) => {
  const replies = [Response.json(body, { status }), new Response("{}", { status: 202 })];
  const server = receive(() => replies.shift() ?? new Response(null, { status: 500 }));
  const begun = begin(server.url, async ({ callOnce }) => (await callOnce("POST", "/v1/x", {}, "Who knows.")).status);
  const ended = travelling(begun, begun.whenEnded());
  if (expected === null) await expect(ended).rejects.toThrow(/ answered 50\d.*\. Who knows\.$/);
  else expect(await ended).toBe(expected);
  expect(server.requests.filter(({ path }) => path === "/v1/x")).toHaveLength(times);
});
