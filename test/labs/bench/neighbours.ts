import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { openDataDir } from "../../../src/data-dir.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { openStore } from "../../../src/store/open.ts";
import { seedTenantIn } from "../../support/seed-tenant.ts";
import { latestKey } from "../../support/store-factory.ts";
import { showProgress } from "./output.ts";

/** Whom the tenant under measurement shares the server with. */
export interface Neighbourhood {
  /** Webhooks with a backlog, each of a tenant of its own. */
  crowd: number;
  crowdUrl(n: number): string;
  /** Events that wait for each of them. */
  backlog: number;
  /** The tenants that send in the measurement, by their webhooks. */
  senders: readonly string[];
}

const backlogPayload = Buffer.from(JSON.stringify({ event_type: "bench.backlog", filler: "x".repeat(450) }));
/** Tenants made at a time: enough that a commit is shared. */
const concurrency = 64;

/** Fills a new data directory through the store, before a server opens it. @returns the API keys of the senders */
export async function seedNeighbourhood(folder: string, { crowd, crowdUrl, backlog, senders }: Neighbourhood) {
  const path = join(folder, "data");
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const dataDir = openDataDir(path);
  const { store } = await openStore({ dataDir: path, clock: systemClock });
  try {
    const numbers = Array.from({ length: crowd }, (_, n) => n).values();
    const events = Array.from({ length: backlog }, () => ({ payload: backlogPayload, type: null }));
    await Promise.all(
      Array.from({ length: concurrency }, async () => {
        for (const n of numbers) {
          const seed = { tier: "enterprise", webhooks: [crowdUrl(n)] } as const;
          const { tenant } = await seedTenantIn({ store, dataDir: path }, seed);
          const apiKeyId = await latestKey(store, tenant.key);
          if (backlog > 0) await store.acceptEvents({ tenantKey: tenant.key, apiKeyId, events });
          if (n % 100 === 0) showProgress(`making neighbours: ${n} of ${crowd}`);
        }
      }),
    );
    const apiKeys: string[] = [];
    for (const url of senders) {
      const { apiKey } = await seedTenantIn({ store, dataDir: path }, { tier: "enterprise", webhooks: [url] });
      apiKeys.push(apiKey);
    }
    return apiKeys;
  } finally {
    await store.close();
    dataDir.release();
  }
}
