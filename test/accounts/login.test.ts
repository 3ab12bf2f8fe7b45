import { describe, expect, test } from "bun:test";
import { createLogin } from "../../src/accounts/login.ts";
import type { HashedFor } from "../../src/accounts/password.ts";
import { DomainError, unavailable } from "../../src/domain/errors.ts";
import { accountGone } from "../../src/domain/standing.ts";
import type { Tenant } from "../../src/domain/tenant.ts";
import { createLog } from "../../src/lib/log.ts";
import type { Limits } from "../../src/store/limits.ts";
import { createMemoryLimits } from "../../src/store/memory-limits.ts";
import type { Store } from "../../src/store/store.ts";
import { createManualClock } from "../support/manual-clock.ts";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

const tenantOf = (id: string) => ({ key: id.length, id, passwordHash: `hash of ${id}` }) as Tenant;

/** A login whose passwords are words and cost nothing; `known`: the addresses that are known for every account. */
function createTestLogin({ localMode = false, known = [] as string[], rememberLogin = async () => {} } = {}) {
  const { clock, advance } = createManualClock();
  const memory = createMemoryLimits(clock);
  /** They answer later, as those of a database do. */
  const limits: Limits = {
    take: (...counts) => turn().then(() => memory.take(...counts)),
    peek: (...counts) => turn().then(() => memory.peek(...counts)),
    giveBack: (...counts) => turn().then(() => memory.giveBack(...counts)),
  };
  const hashed: HashedFor[] = [];
  const login = createLogin({
    clock,
    limits,
    localMode,
    onFailure: () => {},
    noteStranger: () => {},
    log: createLog({ level: "error", format: "json", now: clock.now, out: () => {} }),
    passwords: {
      hash: async () => "hash",
      async verify(password, hash, whose) {
        hashed.push(whose);
        return password === "right" && hash !== null;
      },
    },
    store: {
      findTenant: async (id: string) => (id.startsWith("t") ? tenantOf(id) : null),
      hasLoggedInSince: async (_key: number, from: string) => known.includes(from),
      rememberLogin,
    } as unknown as Store,
  });
  /** How so many logins end, one after the other. */
  async function tally(count: number, of: (n: number) => { loginId?: string; password?: string; from?: string }) {
    const ends: Record<string, number> = {};
    for (let n = 0; n < count; n++) {
      const { loginId = "t1", password = "right", from = "192.0.2.1" } = of(n);
      const end = await login.logIn({ loginId, password }, from).then(
        () => "in",
        (error) => (error instanceof DomainError ? error.code : String(error)),
      );
      ends[end] = (ends[end] ?? 0) + 1;
    }
    return ends;
  }
  return { login, tally, advance, hashed };
}

test("guesses at once from many addresses are counted as they begin: those beyond the limit are not even judged", async () => {
  const { login, hashed } = createTestLogin();
  const guesses = Array.from({ length: 300 }, (_, n) =>
    login.logIn({ loginId: "t1", password: "wrong" }, networks(n)).catch((error: DomainError) => error.code),
  );
  const ends = await Promise.all(guesses);
  expect(ends.filter((end) => end === "wrong_credentials").length).toBe(100);
  expect(ends.filter((end) => end === "too_many_logins").length).toBe(200);
  expect(hashed.length).toBe(100);
});

test("right passwords at once from one address do not pass for failures", async () => {
  const { login } = createTestLogin();
  const logins = Array.from({ length: 30 }, () => login.logIn({ loginId: "t1", password: "right" }, "192.0.2.1"));
  expect((await Promise.all(logins)).length).toBe(30);
  await login.checkAddress("192.0.2.1", tenantOf("t1"));
});

test.each<[string, Error, string]>([
  ["a disk that is full", unavailable("The server's disk is full.", "storage_full", 5), "in"],
  ["a connection that was lost at the commit", new Error("The outcome is not known"), "in"],
  ["an account that was deleted meanwhile", accountGone(), "account_gone"],
])("a right password whose note fails by %s: %p ends as %p", async (_, refusal, end) => {
  const { tally } = createTestLogin({ rememberLogin: () => Promise.reject(refusal) });
  expect(await tally(1, () => ({}))).toEqual({ [end]: 1 });
});

const networks = (n: number) => `2001:db8:${(n + 1).toString(16)}::1`;

describe("right passwords", () => {
  test("of an account are 300 a minute from the addresses that it is known from; the others are not hashed", async () => {
    const known = Array.from({ length: 400 }, (_, n) => `2001:db8:${(n + 1).toString(16)}::/64`);
    const { tally, hashed, advance } = createTestLogin({ known });
    expect(await tally(400, (n) => ({ from: networks(n) }))).toEqual({ in: 300, too_many_logins: 100 });
    expect(hashed.length).toBe(300);
    expect(await tally(1, (n) => ({ loginId: "t22", from: networks(n) }))).toEqual({ in: 1 });
    advance(60_000);
    expect(await tally(1, (n) => ({ from: networks(n) }))).toEqual({ in: 1 });
  });

  test("do not keep a stranger's guess from being judged: it would tell that the account is there", async () => {
    const { tally } = createTestLogin({ known: ["192.0.2.1"] });
    expect(await tally(301, () => ({}))).toEqual({ in: 300, too_many_logins: 1 });
    expect(await tally(1, () => ({ password: "wrong", from: "198.51.100.1" }))).toEqual({ wrong_credentials: 1 });
  });

  test("of a network are 600 a minute, whatever the account and the address", async () => {
    const { tally, hashed } = createTestLogin();
    const from = (n: number) => `2001:db8:7:${n.toString(16)}::1`;
    const ends = await tally(700, (n) => ({ loginId: `t${n}`, from: from(n) }));
    expect(ends).toEqual({ in: 600, too_many_logins: 100 });
    expect(hashed.length).toBe(600);
    expect(await tally(1, () => ({ from: "2001:db8:8::1" }))).toEqual({ in: 1 });
  });

  test("are not counted in local mode, where a script may log in for every event", async () => {
    const { tally } = createTestLogin({ localMode: true, known: ["127.0.0.1"] });
    expect(await tally(1_000, () => ({ from: "127.0.0.1" }))).toEqual({ in: 1_000 });
  });
});

test("who has logged in before does not take turns with strangers who guess at the account", async () => {
  const { tally, hashed } = createTestLogin({ known: ["192.0.2.1"] });
  await tally(1, () => ({}));
  await tally(1, () => ({ from: "198.51.100.1", password: "wrong" }));
  expect(hashed).toEqual([
    { account: "known t1", address: "192.0.2.1" },
    { account: "t1", address: "198.51.100.1" },
  ]);
});
