/**
 * Accounts whose webhooks take the connection and never answer, and who send events all the same. A process of its own, so
 * that thousands of hanging connections do not slow down the one that measures.
 *
 * Usage: bun silent-accounts.ts. Prints its address.
 *   POST /flood            sends the events of the body to every account in it, and answers with the statuses
 *   GET /called?least=N    answers with how many webhooks were called, as soon as so many were
 *   anything else          is one of the webhooks
 */
export interface Flood {
  /** Address of the server. */
  readonly url: string;
  readonly apiKeys: readonly string[];
  readonly events: readonly unknown[];
}

/** Accounts that send at a time. */
const senders = 16;

const called = new Set<string>();
const waiting = new Set<() => void>();

const receiver = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  // Whoever is not answered gives up first.
  idleTimeout: 0,
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/flood") return Response.json(await flood((await request.json()) as Flood));
    if (pathname === "/called") return Response.json(await calledAtLeast(Number(searchParams.get("least"))));
    called.add(pathname);
    for (const look of waiting) look();
    return new Promise<never>(() => {});
  },
});

async function flood({ url, apiKeys, events }: Flood): Promise<number[]> {
  const body = JSON.stringify({ events });
  const statuses: number[] = [];
  const queue = apiKeys.values();
  const workers = Array.from({ length: senders }, async () => {
    for (const apiKey of queue) {
      const headers = { Authorization: `Bearer ${apiKey}`, "Content-Type": "application/json" };
      const answer = await fetch(`${url}/v1/ingest/batch`, { method: "POST", headers, body });
      await answer.arrayBuffer();
      statuses.push(answer.status);
    }
  });
  await Promise.all(workers);
  return statuses;
}

function calledAtLeast(least: number): Promise<number> {
  return new Promise((resolve) => {
    const look = () => {
      if (called.size < least) return;
      waiting.delete(look);
      resolve(called.size);
    };
    waiting.add(look);
    look();
  });
}

process.stdout.write(`${receiver.url.origin}\n`);
// The test holds the other end: when it is gone, so is this.
process.stdin.on("end", () => process.exit(0)).resume();
