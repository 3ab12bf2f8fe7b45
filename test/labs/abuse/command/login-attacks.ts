import { type Attack, call, inParallel } from "./attack.ts";
import { type Account, count } from "./target.ts";

const guess = (loginId: string) => JSON.stringify({ loginId, password: "Wr0ng#Password" });

/** One of 2^32 networks, each an address of its own to the limits. */
const network = (n: number) => `2001:db8:${(n >>> 16).toString(16)}:${(n & 0xffff).toString(16)}::1`;

const logIn = ({ id, password }: Account) => JSON.stringify({ loginId: id, password });

/** Addresses from which one account logs in. */
const addresses = 150;
/** What nobody who logs in once should wait. */
const patienceMs = 2_000;

export const loginAttacks: readonly Attack[] = [
  {
    name: "login-one-address",
    load: "32 connections guess the passwords of 10 accounts from one address",
    accounts: 10,
    guessesPasswords: true,
    expected: [401, 429],
    growthBytes: 60e6,
    growthReason: "10 counters, and what 32 requests under way take",
    run: (target, tally, isOver) =>
      inParallel(32, isOver, async (n) => {
        const { id } = target.accounts[n % 10] ?? { id: "" };
        await call(target, tally, "POST", "/v1/tenants/auth/login", { body: guess(id), from: "203.0.113.9" });
      }),
  },
  {
    name: "login-many-addresses",
    load: "200 connections guess, each time from another network, half of it for accounts that do not exist",
    accounts: 10,
    guessesPasswords: true,
    expected: [401, 429, 503],
    growthBytes: 150e6,
    growthReason: "four hashes of 19 MiB at once, and a hundred that wait",
    run: (target, tally, isOver) =>
      inParallel(200, isOver, async (n) => {
        const { id } = target.accounts[n % 10] ?? { id: "" };
        const loginId = n % 2 === 0 ? id : `t${n.toString(36).padStart(13, "0")}`;
        await call(target, tally, "POST", "/v1/tenants/auth/login", { body: guess(loginId), from: network(n) });
      }),
  },
  {
    name: "login-right",
    load: `one account logs in rightly from ${addresses} addresses, each all the time; ten others log in one after the other`,
    accounts: 11,
    guessesPasswords: true,
    expected: [200, 429, 503, "others 200"],
    growthBytes: 150e6,
    growthReason: "four hashes of 19 MiB at once, and a hundred that wait",
    async run(target, tally, isOver) {
      const [flooder, ...others] = target.accounts as [Account, ...Account[]];
      const body = logIn(flooder);
      const flood = inParallel(addresses, isOver, async (n) => {
        await call(target, tally, "POST", "/v1/tenants/auth/login", { body, from: network((n % addresses) << 16) });
      });
      for (let n = 0; !isOver(); n++) {
        const other = others[n % others.length] as Account;
        const at = performance.now();
        const status = await call(target, {}, "POST", "/v1/tenants/auth/login", {
          body: logIn(other),
          from: `203.0.${n % others.length}.7`,
        });
        count(tally, `others ${status}`);
        if (performance.now() - at > patienceMs) count(tally, `others after more than ${patienceMs} ms`);
      }
      await flood;
    },
  },
];
