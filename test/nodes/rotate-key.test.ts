import { afterAll, expect, test } from "bun:test";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createMigratedDatabase, describeWithPostgres } from "../support/postgres.ts";
import { startTestApp, type TestApp } from "../support/test-app.ts";
import { accountAt, sharedSecrets } from "./pair.ts";

const folder = mkdtempSync(join(tmpdir(), "postrider-rotate-nodes-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const hex = (key: Uint8Array) => Buffer.from(key).toString("hex");
const fileOf = (name: string) => join(folder, `key-of-${name}`);
const keyOf = (name: string) => Buffer.from(readFileSync(fileOf(name), "utf8").trim(), "hex");

function startNode(url: string, name: string): Promise<TestApp> {
  if (!existsSync(fileOf(name))) writeFileSync(fileOf(name), hex(sharedSecrets.masterKey), { mode: 0o600 });
  return startTestApp({
    env: {
      POSTRIDER_DATABASE_URL: url,
      POSTRIDER_NODE_NAME: name,
      POSTRIDER_PUBLIC_URL: "http://localhost:9",
      POSTRIDER_MASTER_KEY_FILE: fileOf(name),
    },
    secrets: { ...sharedSecrets, masterKey: keyOf(name) },
    durability: "waived",
    keySettleMs: 1,
  });
}

const path = "/operator/master-key";
const token = sharedSecrets.operatorToken;

async function untilRotated({ request }: TestApp): Promise<void> {
  while ((await request("GET", path, { token })).body.rotating) await Bun.sleep(5);
}

describeWithPostgres("the master key of several servers", () => {
  test("is replaced when all have the new one, and a server without it does not start from then on", async () => {
    const { url, remove } = await createMigratedDatabase();
    const [a, b] = [await startNode(url, "a"), await startNode(url, "b")];
    const atA = await a.account();
    const headers = { "X-Secret": "known to the receiver" };
    await atA.put("/v1/tenants/webhooks", [{ webhook_url: "https://example.com/hook", headers, paused: true }]);
    const atB = accountAt(b, atA);
    const paths = ["/v1/tenants/api-keys", "/v1/tenants/signing-secret", "/v1/tenants/webhooks?expand=true"];
    const seen = (account: typeof atB) =>
      Promise.all(paths.map(async (one) => (await account.get(one)).text.replace(/"last_used":[^,]*,/, "")));
    const before = await seen(atB);

    const refused = await a.request("POST", `${path}/rotate`, { token });
    expect([refused.status, refused.body.code]).toEqual([503, "master_key_missing"]);
    expect(refused.body.message).toContain("but b does not have it; nothing has changed");
    expect(hex(keyOf("a"))).toBe(hex(sharedSecrets.masterKey));

    copyFileSync(`${fileOf("a")}.next`, `${fileOf("b")}.next`);
    const begun = await b.request("POST", `${path}/rotate`, { token });
    expect(begun.status).toBe(202);
    // Both serve all the time.
    expect((await atA.ingest({ n: 1 })).status).toBe(202);
    expect((await atB.ingest({ n: 2 })).status).toBe(202);
    await Promise.all([untilRotated(a), untilRotated(b)]);
    expect(hex(keyOf("a"))).not.toBe(hex(sharedSecrets.masterKey));
    expect(hex(keyOf("b"))).toBe(hex(keyOf("a")));
    for (const { log } of [a, b]) {
      expect(log.filter((line) => line.includes('"event":"master_key.replaced"'))).toHaveLength(1);
    }
    expect(await seen(atB)).toEqual(before);
    await b.stop();
    // Of one that was down meanwhile.
    await expect(startNode(url, "c")).rejects.toThrow(
      "The master key is not the one that the database was written with",
    );
    const again = await startNode(url, "b");
    expect(await seen(accountAt(again, atA))).toEqual(before);
    await Promise.all([a.stop(), again.stop()]);
    await remove();
  });
});
