import { afterAll, beforeAll, expect, test } from "bun:test";
import { useServer } from "../../api/scenario.ts";
import { type Hooks, ingestOne, startHooks } from "../../support/api-server.ts";
import { heldUpMs } from "../../support/patience.ts";
import type { Answer, TestAccount } from "../../support/test-app.ts";

/**
 * Hazards, section 5, "Login"; rules, section 4. What one guess more is answered is in `api/sessions.test.ts` and
 * `api/modes.test.ts`; here they come all at once, from many addresses, and for accounts that do not exist.
 */

let hooks: Hooks;
afterAll(() => hooks.stop());
const server = useServer({
  env: {
    POSTRIDER_PUBLIC_URL: "https://relay.example.com",
    POSTRIDER_SIGNUP: "closed",
    POSTRIDER_ALLOW_TARGETS: "127.0.0.0/8",
    POSTRIDER_TRUSTED_PROXIES: "127.0.0.1/32",
  },
});
let ada: Pick<TestAccount, "id" | "password" | "apiKey"> & { jwt: string };

/** As a trusted proxy passes it on. */
const logInFrom = (address: string, loginId: string, password: string): Promise<Answer> =>
  server().request("POST", "/v1/tenants/auth/login", {
    headers: { "X-Forwarded-For": address },
    body: { loginId, password },
  });

/** How many answers had which status. */
const tally = (answers: readonly Answer[]): Record<number, number> =>
  Object.fromEntries([...Map.groupBy(answers, ({ status }) => status)].map(([status, all]) => [status, all.length]));

const atOnce = (n: number, ask: (n: number) => Promise<Answer>) =>
  Promise.all(Array.from({ length: n }, (_, i) => ask(i)));

async function makeAccount() {
  const { operatorToken: token } = server();
  const { body: account } = await server().request("POST", "/operator/tenants", { token, body: {} });
  const { body: session } = await logInFrom("192.0.2.1", account.tenant_id, account.password);
  const [key] = (await server().request("GET", "/v1/tenants/api-keys", { token: session.token })).body;
  return { id: account.tenant_id, password: account.password, jwt: session.token, apiKey: key.key };
}

beforeAll(async () => {
  hooks = await startHooks();
  ada = await makeAccount();
});

test("of 300 guesses at once ten are judged, whether the account exists or not; the others hear when to come again", async () => {
  const known = await atOnce(300, () => logInFrom("198.51.100.1", ada.id, "Wr0ng#Password"));
  const unknown = await atOnce(300, () => logInFrom("198.51.100.2", "t0000000000000", "Wr0ng#Password"));
  expect([tally(known), tally(unknown)]).toEqual([
    { 401: 10, 429: 290 },
    { 401: 10, 429: 290 },
  ]);
  const bodies = (answers: readonly Answer[]) => new Set(answers.map(({ text }) => text));
  expect(bodies(unknown)).toEqual(bodies(known));
  for (const { status, headers } of [...known, ...unknown]) {
    const seconds = Number(headers.get("Retry-After") ?? Number.NaN);
    expect([status, status === 401 || (seconds >= 890 && seconds <= 900)]).toEqual([status, true]);
  }
  expect((await logInFrom("198.51.100.3", ada.id, ada.password)).status).toBe(200);
});

test("an address with a port behind it is no second set of guesses, in whatever form it comes", async () => {
  const forms = ["198.51.100.7", "198.51.100.7:PORT", '"198.51.100.7:PORT"', "[::ffff:198.51.100.7]:PORT"];
  const answers = await atOnce(40, (n) =>
    logInFrom((forms[n % 4] ?? "").replace("PORT", String(50_000 + n)), "t0000000000001", "Wr0ng#Password"),
  );
  expect(tally(answers)).toEqual({ 401: 10, 429: 30 });
});

test("an id in another case or with white space is no second set of guesses", async () => {
  const { id } = await makeAccount();
  const spellings = ["nobody@example.com", "NOBODY@example.com", "Nobody@Example.COM"];
  const answers = await atOnce(30, (n) => logInFrom("198.51.100.4", spellings[n % 3] ?? "", "Wr0ng#Password"));
  expect(tally(answers)).toEqual({ 401: 10, 429: 20 });
  // Whatever is not the id is another, unknown one; from this address 40 failures are left.
  const others = await atOnce(60, (n) => logInFrom("198.51.100.4", `${id} ${n}`, "Wr0ng#Password"));
  expect(tally(others)).toEqual({ 401: 40, 429: 20 });
});

test("right passwords given at once do not pass for failures", async () => {
  const answers = await atOnce(30, () => logInFrom("198.51.100.5", ada.id, ada.password));
  expect(tally(answers)).toEqual({ 200: 30 });
});

test("of 250 addresses at once the server checks a hundred passwords or so, and who has a session feels nothing", async () => {
  const token = ada.jwt;
  const hook = hooks.hook();
  await server().request("PUT", "/v1/tenants/webhooks", { token, body: [{ webhook_url: hook.url }] });
  const account = {
    ...ada,
    ingest: (payload: unknown) => server().request("POST", "/v1/ingest", { token: ada.apiKey, body: { payload } }),
  } as TestAccount;

  let isOver = false;
  const flood = atOnce(250, (n) => logInFrom(`2001:db8:0:${n.toString(16)}::1`, `t000000000${n}`, "x")).finally(() => {
    isOver = true;
  });
  let delivered = 0;
  while (!isOver) {
    const at = performance.now();
    await ingestOne(account, { delivered });
    delivered += 1;
    await hook.whenReceived(delivered);
    expect(performance.now() - at).toBeLessThan(heldUpMs);
  }
  const answers = await flood;
  const { 401: judged = 0, 503: busy = 0 } = tally(answers);
  // Four hashes and a hundred that wait; one that has ended while others still arrived made room for one more.
  expect(judged + busy).toBe(250);
  expect(judged).toBeGreaterThanOrEqual(104);
  expect(busy).toBeGreaterThan(50);
  for (const { headers } of answers.filter(({ status }) => status === 503)) {
    expect(headers.get("Retry-After")).toBe("2");
  }
  expect(delivered).toBeGreaterThan(1);
  // It passes: nobody is locked out, and its owner, whose address is known, never was.
  expect((await logInFrom("192.0.2.1", ada.id, ada.password)).status).toBe(200);
});

test("a failed login tells the log where it came from, and never what was tried", async () => {
  await logInFrom("198.51.100.6", 'x"\n{"level":"error"}', "S3cret#Guess");
  const log = server().log.join("\n");
  expect(log).not.toMatch(/S3cret#Guess|Wr0ng#Password|level\\/);
  expect(log).toContain('"event":"login.failed","address":"198.51.100.6","tenantId":null');
  expect(server().log.filter((line) => /"level":"(error|warn)"/.test(line))).toEqual([]);
});
