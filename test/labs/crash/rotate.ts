import { Database } from "bun:sqlite";
import { createHmac } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { makeApiKey } from "../../../src/accounts/api-keys.ts";
import { makeSigningKey, makeSigningSecret } from "../../../src/accounts/signing-keys.ts";
import { createFaults, noteFault } from "../../../src/cli/selftest/rig/ledger.ts";
import { type Server, startServer } from "../../../src/cli/selftest/rig/server.ts";
import { openDataDir } from "../../../src/data-dir.ts";
import { createHeaderVault } from "../../../src/delivery/own-headers.ts";
import { generateSecret } from "../../../src/delivery/signature.ts";
import { usualSettings } from "../../../src/domain/webhook.ts";
import { systemClock as clock, sleep } from "../../../src/lib/clock.ts";
import { newId, newTenantId } from "../../../src/lib/id.ts";
import { createRandom } from "../../../src/lib/random.ts";
import { createVault } from "../../../src/lib/vault.ts";
import { sealedContexts } from "../../../src/sealed-contexts.ts";
import { operatorTokenFile } from "../../../src/secrets.ts";
import { openStore } from "../../../src/store/open.ts";
import { contextOf, sealedPlaces } from "../../../src/store/sealed.ts";
import { databaseFile } from "../../../src/store/sqlite/open.ts";
import { createSealedTables } from "../../../src/store/sqlite/sealed.ts";
import { program } from "./program.ts";

/**
 * `bun run crash:rotate`: replaces the master key of a server under load, again and again, and kills the server meanwhile.
 * A receiver checks each delivery by the account's secret and its own header, so it notices a value that was lost, or opened
 * wrongly. `EXECUTABLE_UNDER_TEST` names an executable in place of the sources. The exit code is 0 when everything held.
 */
const help = `Usage: bun run crash:rotate [options]

  --accounts 2500  with 8 webhooks each, all with headers
  --rate 200       events a second
  --kills 8        how many
  --seed N         repeats the moments of the kills
`;

const { values } = parseArgs({
  options: {
    accounts: { type: "string", default: "2500" },
    rate: { type: "string", default: "200" },
    kills: { type: "string", default: "8" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 32)) },
    help: { type: "boolean", default: false },
  },
});

const webhooksOfAccount = 8;
/** A rotation rests for 20 s, and most of what can go wrong is before. */
const longestLifeMs = [600, 3_000, 24_000] as const;
const settings = {
  POSTRIDER_MIN_FREE_DISK: "0",
  POSTRIDER_PAYMENTS: "off",
  POSTRIDER_LOG_LEVEL: "info",
  POSTRIDER_LOG_FORMAT: "json",
  POSTRIDER_RETRY_SCHEDULE: "1s,2s,4s,8s,8s",
};

const say = (line: string) => process.stdout.write(`${line}\n`);
const tell = (line: string) => process.stderr.write(`${line}\n`);

interface Account {
  readonly id: string;
  readonly apiKey: string;
  readonly secret: string;
}

if (values.help) process.stdout.write(help);
else process.exit(await run());

async function run(): Promise<number> {
  const [count, rate, kills, seed] = [values.accounts, values.rate, values.kills, values.seed].map(Number) as [
    number,
    number,
    number,
    number,
  ];
  const random = createRandom(seed);
  const dataDir = mkdtempSync(join(tmpdir(), "postrider-crash-rotate-"));
  const faults = createFaults();
  const accounts = new Map<string, Account>();
  const delivered = new Set<string>();
  const accepted = new Set<string>();
  let [duplicates, cutOff, rotations] = [0, 0, 0];

  const receiver = Bun.serve({
    port: 0,
    async fetch(request) {
      const body = await request.text();
      const [, id = "", n = ""] = new URL(request.url).pathname.split("/");
      const account = accounts.get(id);
      const event = request.headers.get("webhook-id") ?? "";
      if (account === undefined || !isSignedBy(account.secret, request.headers, body)) {
        noteFault(faults, `a delivery to ${id}/${n} is not signed with the account's secret`);
      }
      if (request.headers.get("x-secret") !== `${id}/${n}`)
        noteFault(faults, `a delivery to ${id}/${n} lacks its header`);
      if (delivered.has(event)) duplicates += 1;
      delivered.add(event);
      return new Response(null, { status: 200 });
    },
  });

  async function fill(): Promise<void> {
    const home = openDataDir(dataDir);
    const vault = createVault(home.secrets.masterKey);
    const headerVault = createHeaderVault(vault);
    const { store } = await openStore({ dataDir, clock, vault });
    const create = async () => {
      const id = newTenantId();
      const secret = generateSecret();
      const apiKey = makeApiKey(vault, id);
      const webhooks = Array.from({ length: webhooksOfAccount }, (_, n) => ({
        ...usualSettings,
        ...{ id: newId("wh"), url: `http://127.0.0.1:${receiver.port}/${id}/${n}`, name: "" },
        eventTypes: [`type.${n}`],
        sealedHeaders: headerVault.seal(id, [["X-Secret", `${id}/${n}`]]),
      }));
      await store.createTenant(
        {
          ...{ id, name: "n", email: `${id}@example.com`, loginEmail: null, tier: "enterprise" },
          ...{ enforcedTier: "enterprise", passwordHash: "none", apiKey, webhooks },
          signingKey: makeSigningKey(vault, id),
          sealedSigningSecret: makeSigningSecret(vault, id, secret),
        },
        clock.now(),
      );
      const context = sealedContexts.key(id, apiKey.id);
      accounts.set(id, { id, secret, apiKey: Buffer.from(vault.open(apiKey.sealed, context)).toString() });
    };
    for (let made = 0; made < count; made += 100) {
      await Promise.all(Array.from({ length: Math.min(100, count - made) }, create));
    }
    await store.close();
    home.release();
  }

  /** The server that is to answer; null: it was killed, or is starting. */
  let base: string | null = null;
  let slowestMs = 0;

  async function send(account: Account): Promise<void> {
    const to = base;
    if (to === null) return;
    const sentAt = clock.monotonicMs();
    const body = JSON.stringify({
      payload: { n: random.next() },
      event_type: `type.${Math.floor(random.next() * webhooksOfAccount)}`,
    });
    const headers = { Authorization: `Bearer ${account.apiKey}`, "Content-Type": "application/json" };
    try {
      const answer = await fetch(`${to}/v1/ingest`, { method: "POST", headers, body });
      const { eventId } = (await answer.json()) as { eventId: string };
      if (answer.status === 202) accepted.add(eventId);
      else noteFault(faults, `an event was answered ${answer.status}`);
      slowestMs = Math.max(slowestMs, clock.monotonicMs() - sentAt);
    } catch {
      // What was under way at a kill may be lost, and was not acknowledged.
      if (base === to) noteFault(faults, "an event was refused by a server that lives");
      else cutOff += 1;
    }
  }

  let isOver = false;
  const underWay = new Set<Promise<void>>();
  async function load(): Promise<void> {
    const all = [...accounts.values()];
    const startedAt = clock.monotonicMs();
    for (let sent = 0; !isOver; sent++) {
      await sleep(clock, startedAt + (sent * 1000) / rate - clock.monotonicMs());
      const account = all[Math.floor(random.next() * all.length)];
      if (account === undefined) continue;
      const done = send(account).finally(() => underWay.delete(done));
      underWay.add(done);
    }
    await Promise.all(underWay);
  }

  async function start(): Promise<Server> {
    const server = startServer({ dataDir, settings, clock, faults, program });
    const { port } = await server.ready;
    base = `http://127.0.0.1:${port}`;
    return server;
  }

  function rotate() {
    return Bun.spawn([...program, "rotate-key", "--json"], {
      env: { ...process.env, POSTRIDER_DATA_DIR: dataDir },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
  }

  async function isRotating(): Promise<boolean> {
    const token = readFileSync(join(dataDir, operatorTokenFile), "utf8").trim();
    const answer = await fetch(`${base}/operator/master-key`, { headers: { Authorization: `Bearer ${token}` } });
    return ((await answer.json()) as { rotating: boolean }).rotating;
  }

  const keyNow = () => readFileSync(join(dataDir, "master-key"), "utf8").trim();

  tell(`seed ${seed}: filling ${dataDir}`);
  await fill();
  let server = await start();
  const loading = load();
  const keys = new Set([keyNow()]);
  for (let kill = 1; kill <= kills; kill++) {
    const longestMs = longestLifeMs[kill % longestLifeMs.length] ?? 0;
    // The shortest ones are for the moment in which the new key comes into use.
    if (longestMs === longestLifeMs[0]) while (await isRotating()) await sleep(clock, 250);
    const command = rotate();
    const lifeMs = random.next() * longestMs;
    await sleep(clock, lifeMs);
    base = null;
    await server.kill();
    command.kill("SIGKILL");
    const isPlaced = !keys.has(keyNow());
    server = await start();
    keys.add(keyNow());
    tell(
      `kill ${kill} after ${Math.round(lifeMs)} ms (${isPlaced ? "new key in place" : "former key in place"}); ` +
        `${accepted.size} accepted, ${delivered.size} delivered, ${faults.told.length} faults`,
    );
  }
  // Undisturbed: one that ends what is left, and a whole one.
  for (const _ of ["the rest", "a whole one"]) {
    slowestMs = 0;
    const startedAt = clock.monotonicMs();
    const command = rotate();
    const [code, out, err] = await Promise.all([
      command.exited,
      new Response(command.stdout).text(),
      new Response(command.stderr).text(),
    ]);
    rotations += 1;
    if (code !== 0) noteFault(faults, `rotate-key ended with ${code}: ${err.trim()}`);
    const tookMs = Math.round(clock.monotonicMs() - startedAt);
    tell(`rotated in ${tookMs} ms: ${out.trim()}; slowest answer ${Math.round(slowestMs)} ms`);
    keys.add(keyNow());
  }
  isOver = true;
  await loading;
  const deadline = clock.monotonicMs() + 60_000;
  while ([...accepted].some((id) => !delivered.has(id)) && clock.monotonicMs() < deadline) await sleep(clock, 100);
  const lost = [...accepted].filter((id) => !delivered.has(id)).length;
  if (lost > 0) noteFault(faults, `${lost} acknowledged events were not delivered`);
  base = null;
  await server.stop();
  const sealed = countSealed(dataDir);
  if (sealed.others > 0) noteFault(faults, `${sealed.others} of ${sealed.all} values do not open with the key in use`);
  receiver.stop(true);
  say(
    `${kills} kills, ${keys.size - 1} keys, ${rotations} rotations undisturbed; ${accepted.size} acknowledged events, ${lost} lost, ` +
      `${delivered.size} delivered, ${duplicates} again, ${cutOff} requests cut off by kills; ${sealed.all} values sealed; ` +
      `${faults.told.length} faults`,
  );
  for (const fault of faults.told) say(`  ${fault}`);
  if (faults.told.length > 0) return 1;
  rmSync(dataDir, { recursive: true });
  return 0;
}

/** As the specification of Standard Webhooks has it, and by nothing of ours. */
function isSignedBy(secret: string, headers: Headers, body: string): boolean {
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const content = `${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.${body}`;
  const expected = `v1,${createHmac("sha256", key).update(content).digest("base64")}`;
  return (headers.get("webhook-signature") ?? "").split(" ").includes(expected);
}

/** Of a server that has stopped: how many values there are, and how many of them the key in its file does not open. */
function countSealed(dataDir: string): { all: number; others: number } {
  const client = new Database(join(dataDir, databaseFile), { readonly: true });
  const vault = createVault(Buffer.from(readFileSync(join(dataDir, "master-key"), "utf8").trim(), "hex"));
  const tables = createSealedTables(client);
  const values = sealedPlaces.flatMap((place) =>
    tables[place]
      .slice(0, 10_000_000)
      .values.map((value) => ({ value, context: contextOf(sealedContexts, place, value) })),
  );
  const others = values.filter(({ value, context }) => {
    try {
      vault.open(value.sealed, context);
      return false;
    } catch {
      return true;
    }
  });
  client.close(true);
  return { all: values.length, others: others.length };
}
