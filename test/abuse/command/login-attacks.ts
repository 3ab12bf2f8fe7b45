import { type Attack, call, inParallel } from "./attack.ts";

const guess = (loginId: string) => JSON.stringify({ loginId, password: "Wr0ng#Password" });

/** One of 2^32 networks, each an address of its own to the limits. */
const network = (n: number) => `2001:db8:${(n >>> 16).toString(16)}:${(n & 0xffff).toString(16)}::1`;

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
];
