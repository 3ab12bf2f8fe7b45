import { describe, expect, test } from "bun:test";
import { type Server, standingOf, summaryOf, workOf } from "../../../web/operator/screens/standing.ts";

const server = (name: string, changes: Partial<Server> = {}): Server => ({
  slot: 0,
  name,
  listeners: ["10.0.0.1:8080"],
  since: "2026-03-01T12:00:00.000Z",
  last_heartbeat_seconds: 1.2,
  lease_left_seconds: 18.8,
  schema: 1,
  alive: true,
  jobs: [],
  answering: false,
  ...changes,
});
const silent = (name: string) => server(name, { last_heartbeat_seconds: 9, lease_left_seconds: 11 });
const dead = (name: string) => server(name, { last_heartbeat_seconds: 23.4, lease_left_seconds: 0, alive: false });

describe("a server is shown", () => {
  test.each([
    ["alive", server("a"), "delivered", "Alive"],
    ["alive while one heartbeat is late", server("a", { last_heartbeat_seconds: 8.9 }), "delivered", "Alive"],
    ["silent from when it starts nothing more", silent("a"), "waiting", "Silent, no heartbeat for 9 s"],
    ["dead from when its lease has run out", dead("a"), "failed", "Lease ran out"],
  ] as const)("%s", (_, given, tone, words) => {
    expect(standingOf(given)).toMatchObject({ tone, words });
  });

  test("with what it does in the background, in words", () => {
    expect(workOf(server("a"))).toBe("–");
    expect(workOf(server("a", { jobs: ["biller", "janitor", "replayer"] }))).toBe("payments, clean-up, replays");
    expect(workOf(server("a", { jobs: ["partitioner"] }))).toBe("partitioner");
  });
});

describe("the sentence above the list says", () => {
  test.each([
    ["that one on SQLite is alone", [server("a")], false, "calm", /^This server is alone/],
    ["what a second one would be good for", [server("a")], true, "calm", /^One server .* would take over when it dies/],
    ["that all are alive", [server("a"), server("b")], true, "calm", /^2 servers share this database, and all are/],
    ["which is silent", [server("a"), silent("b")], true, "warn", /^b does not reach the database, and start/],
    ["which are silent", [silent("a"), silent("b")], true, "warn", /^a and b do not reach the database/],
    ["which is dead, before anything else", [silent("a"), dead("b")], true, "bad", /^b has not been heard of for 20 s/],
    ["which are dead", [dead("a"), dead("b"), dead("c")], true, "bad", /^a, b and c have not been heard of/],
  ] as const)("%s", (_, nodes, shared, tone, text) => {
    const summary = summaryOf(nodes, shared);
    expect(summary.tone).toBe(tone);
    expect(summary.text).toMatch(text);
  });
});
