import { expect, test } from "bun:test";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { patienceMs } from "../../support/patience.ts";
import { describeWithOwnServer, describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { administer, sharedServer, startFastServer } from "../../support/postgres-server.ts";

describeWithPostgres("the server of the tests", () => {
  const postgres = usePostgres();

  test("gives each test a database of its own", async () => {
    const urls = [await postgres.database(), await postgres.database()];
    for (const url of urls) {
      const sql = new SQL(url, { max: 1 });
      await sql.unsafe("create table mine (a int)");
      await sql.close();
    }
    expect(new Set(urls).size).toBe(2);
  });

  test("is of a version that the program takes", async () => {
    const rows = await administer(
      await sharedServer(),
      "select current_setting('server_version_num')::int >= 150000 as ok",
    );
    expect(rows).toMatchObject([{ ok: true }]);
  });
});

describeWithOwnServer("a server of one's own", () => {
  test("has what was committed when it crashes and starts again", async () => {
    const server = await startFastServer();
    await administer(server, "create table kept (a int)");
    await administer(server, "insert into kept values (1)");
    await server.stop("immediate");
    await server.start();
    expect(await administer(server, "select a from kept")).toMatchObject([{ a: 1 }]);
    await server.remove();
    expect(existsSync(server.folder)).toBe(false);
  });

  const support = JSON.stringify(join(import.meta.dir, "../../support/postgres-server.ts"));
  /** A process that starts one, and does this with it. */
  const startIn = (what: string) =>
    spawn(
      process.execPath,
      ["-e", `import(${support}).then(async (m) => { const server = await m.startFastServer(); ${what} })`],
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    );

  test("is waited for by a process that has nothing else to do, at its start and at its end", async () => {
    const child = startIn("await server.remove(); console.log('removed');");
    let said = "";
    child.stdout.on("data", (data) => (said += data));
    await once(child, "exit");
    expect(said).toBe("removed\n");
  });

  test("ends with the process that started it, also when that is killed", async () => {
    const child = startIn("console.log(server.folder); setInterval(() => {}, 1_000);");
    const folder = await new Promise<string>((resolve) =>
      child.stdout.once("data", (said) => resolve(`${said}`.trim())),
    );
    expect(existsSync(join(folder, "data", "postmaster.pid"))).toBe(true);
    child.kill("SIGKILL");
    const until = performance.now() + patienceMs;
    while (existsSync(folder) && performance.now() < until) await Bun.sleep(20);
    expect(existsSync(folder)).toBe(false);
  });
});
