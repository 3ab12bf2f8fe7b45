import { connect, type Socket } from "node:net";
import { headOf, statusOf } from "../../../support/raw-peer.ts";
import { type Attack, inParallel } from "./attack.ts";
import { type AttackTarget, count, type Tally } from "./target.ts";

const slowConnections = 3_000;
const dripEveryMs = 1_000;

interface Outcome {
  /** What to write every second; nothing more when absent. */
  drip?: string;
  /** Ends the connection by a reset when this much has been handed to the kernel. */
  resets?: boolean;
  /** Leaves as soon as it has the head of an answer. */
  leaves?: boolean;
}

/** One connection from its begin to its end, counted by the status that it got or by who ended it. */
async function visit(
  { port }: AttackTarget,
  tally: Tally,
  begin: string | Uint8Array,
  { drip, resets = false, leaves = false }: Outcome,
  isOver: () => boolean,
): Promise<void> {
  const socket: Socket = connect(port, "127.0.0.1");
  let received = "";
  socket.on("error", () => {});
  socket.on("data", (bytes) => {
    if (received.length < 100) received += bytes.toString("latin1");
    if (leaves) socket.destroy();
  });
  // Not `once`, which rejects when the server resets the connection.
  const closed = new Promise((resolve) => socket.on("close", resolve));
  socket.write(begin, () => {
    if (resets) socket.resetAndDestroy();
  });
  const timer = setInterval(() => {
    if (isOver()) socket.destroy();
    else if (drip !== undefined && socket.writable) socket.write(drip);
  }, dripEveryMs);
  await closed;
  clearInterval(timer);
  if (isOver()) return;
  if (resets) count(tally, "broken off");
  else count(tally, statusOf(received) || "cut without an answer");
}

const declared = (path: string, length: number, token?: string) =>
  `${headOf("POST", path, { "Content-Length": String(length), ...(token && { Authorization: `Bearer ${token}` }) })}\r\n`;
const login = "/v1/tenants/auth/login";

export const connectionAttacks: readonly Attack[] = [
  {
    name: "slow-clients",
    load: `${slowConnections} connections at a time: without a word, heads of a line a second, bodies of a byte a second after 0 or 100 KB`,
    accounts: 1,
    seconds: 60,
    // What its bodies announce is more than the room of one account: those beyond are asked to come back.
    expected: ["cut without an answer", 503],
    growthBytes: 400e6,
    growthReason:
      "a fourth has sent 100 KB of a body that may be kept for 32 s, and the listener reserves what they announce",
    run(target, tally, isOver) {
      const apiKey = target.accounts[0]?.apiKey ?? "";
      const large = `${declared("/v1/ingest", 260_000, apiKey)}{"payload":{"x":"${"x".repeat(100_000)}`;
      const kinds: readonly [string, Outcome][] = [
        ["", {}],
        [headOf("GET", "/healthz"), { drip: "X-A: b\r\n" }],
        [declared(login, 16_000), { drip: " " }],
        [large, { drip: "x" }],
      ];
      return inParallel(slowConnections, isOver, async (n) => {
        const [begin, outcome] = kinds[n % kinds.length] ?? ["", {}];
        await visit(target, tally, begin, outcome, isOver);
      });
    },
  },
  {
    name: "broken-uploads",
    load: "64 connections at a time send half an event of 200 KB and reset",
    accounts: 1,
    expected: ["broken off"],
    growthBytes: 150e6,
    growthReason: "64 bodies of 100 KB under way, and the garbage of thousands before them",
    run(target, tally, isOver) {
      const half = `${declared("/v1/ingest", 200_000, target.accounts[0]?.apiKey)}{"payload":{"x":"${"x".repeat(100_000)}`;
      return inParallel(64, isOver, () => visit(target, tally, half, { resets: true }, isOver));
    },
  },
  {
    name: "oversized",
    load: "32 connections at a time: targets and fields of 20 KB, 300 fields, bodies above each limit, declared and in chunks, nesting of 100,000",
    accounts: 1,
    expected: [400, 413, 431],
    growthBytes: 200e6,
    growthReason: "of a body above its limit nothing is kept, and of others 5 MiB at most, 32 times",
    run(target, tally, isOver) {
      const { apiKey, session } = target.accounts[0] ?? { apiKey: "", session: "" };
      const withToken = (path: string, token: string, body: string) =>
        `${declared(path, Buffer.byteLength(body), token)}${body}`;
      const chunks = `${headOf("PUT", "/v1/tenants/webhooks", { Authorization: `Bearer ${session}`, "Transfer-Encoding": "chunked" })}\r\n`;
      const begins = [
        headOf("GET", `/${"a".repeat(20_000)}`),
        headOf("GET", "/healthz", { "X-A": "a".repeat(20_000) }),
        `${headOf("GET", "/healthz")}${"X-A: b\r\n".repeat(300)}\r\n`,
        declared(login, 9_000_000),
        withToken("/v1/ingest", apiKey, " ".repeat(300_000)),
        withToken("/v1/ingest/batch", apiKey, " ".repeat(6_000_000)),
        `${chunks}11000\r\n${" ".repeat(0x11000)}\r\n0\r\n\r\n`,
        withToken("/v1/ingest", apiKey, `{"payload":{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}}`),
        withToken("/v1/ingest", apiKey, `${'{"payload":'.repeat(20_000)}1${"}".repeat(20_000)}`),
        withToken(login, "", `${'{"loginId":'.repeat(5_000)}1${"}".repeat(5_000)}`),
        withToken(login, "", `{${Array.from({ length: 6_000 }, (_, n) => `"k${n}":1`).join()}}`),
        withToken("/v1/ingest/batch", apiKey, `{"events":[${'{"payload":{}},'.repeat(1_000)}{"payload":{}}]}`),
      ];
      return inParallel(32, isOver, (n) =>
        visit(target, tally, begins[n % begins.length] ?? "", { leaves: true }, isOver),
      );
    },
  },
];
