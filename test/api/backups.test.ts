import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { until } from "../support/api-server.ts";
import { startTestApp } from "../support/test-app.ts";

/** rules 16 */
describe("backups of a server, as its operator asks for them", () => {
  test("are made beside it, verified, listed and in the metrics", async () => {
    const server = await startTestApp({ env: { POSTRIDER_BACKUP_URL: "", POSTRIDER_BACKUP_KEEP: "3" } });
    const token = server.operatorToken;
    const refused = await server.request("POST", "/operator/backups", { token });
    expect(refused.body).toMatchObject({ code: "backup_not_configured" });
    expect((await server.request("GET", "/operator/backups", { token })).body).toMatchObject({
      place: null,
      backups: [],
    });
    expect((await server.request("GET", "/metrics", { token })).text).not.toContain("postrider_backup");
    await server.stop({ keepData: true });

    const folder = join(server.dataDir, "relay.example.com");
    const again = await startTestApp({ dataDir: server.dataDir, env: { POSTRIDER_BACKUP_URL: folder } });
    try {
      await again.account();
      const begun = await again.request("POST", "/operator/backups", { token });
      expect(begun).toMatchObject({ status: 202, body: { under_way: "backup" } });
      const list = async () => (await again.request("GET", "/operator/backups", { token })).body;
      const { backups, latest, place, keep } = await until(list, ({ under_way }) => under_way === null);
      expect(latest).toMatchObject({ kind: "backup", error: null });
      expect({ place, keep }).toEqual({ place: folder, keep: 7 });
      expect(backups).toEqual([
        { name: latest.name, bytes: latest.bytes, created_at: expect.any(String), verified: true },
      ]);
      expect(readdirSync(folder)).toEqual([latest.name]);
      const metrics = (await again.request("GET", "/metrics", { token })).text;
      expect(metrics).toMatch(/^postrider_backup_last_failed 0$/m);
      expect(metrics).toContain(
        `postrider_backup_last_verified_timestamp_seconds ${Date.parse(backups[0].created_at) / 1000}`,
      );
      await again.request("POST", `/operator/backups/${latest.name}/verify`, { token });
      const after = await until(list, ({ under_way }) => under_way === null);
      expect(after).toMatchObject({ latest: { kind: "verify", name: latest.name }, latest_backup: latest });
      const unknown = await again.request("POST", "/operator/backups/none/verify", { token });
      expect(unknown).toMatchObject({ status: 404, body: { code: "backup_not_found" } });
      const noted = await again.request("GET", "/operator/audit?tenant=&action=backup_verification.started", { token });
      expect(noted.body).toMatchObject({ entries: [{ by: "operator", detail: { backup: latest.name } }], total: 1 });
      expect(existsSync(join(server.dataDir, "backups.json"))).toBe(true);
    } finally {
      await again.stop();
    }
  });
});
