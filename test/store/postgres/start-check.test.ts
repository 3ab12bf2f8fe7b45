import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../src/lib/clock.ts";
import { isOfThisSchema } from "../../../src/store/postgres/migrations.ts";
import { checkServer, problemOf, type ServerFacts } from "../../../src/store/postgres/start-check.ts";
import { type Certificate, createAuthority, createSelfSigned } from "../../support/certificates.ts";
import { describeWithOwnServer, describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { administer, sharedServer, startFastServer } from "../../support/postgres-server.ts";
import { createTlsFront } from "../../support/postgres-tls.ts";
import { createTransactionPooler } from "../../support/transaction-pooler.ts";

const sound: ServerFacts = {
  version: 170_010,
  inRecovery: false,
  readOnly: false,
  fsync: true,
  synchronousCommit: "on",
  encoding: "UTF8",
  byteaOutput: "hex",
  settingsLast: true,
  deadlineHolds: true,
  database: "relay",
  user: "clerk",
  schema: "public",
  mayCreateTables: true,
  otherOwner: null,
};

describe("a server is refused at the start that", () => {
  test("has nothing against it: it is taken", () => {
    expect(problemOf(sound)).toBeNull();
    expect(problemOf({ ...sound, synchronousCommit: "remote_apply" })).toBeNull();
  });

  test.each([
    ["is too old", { version: 140_011 }, /is PostgreSQL 14.*Try: upgrade/],
    ["is a standby", { inRecovery: true, readOnly: true }, /standby.*Try: name the primary/],
    ["only reads", { readOnly: true }, /is read-only.*Try: set default_transaction_read_only/],
    ["does not sync", { fsync: false }, /fsync = off.*Try:/],
    ["answers before it syncs", { synchronousCommit: "off" }, /synchronous_commit = off.*Try:/],
    ["has another encoding", { encoding: "SQL_ASCII" }, /is encoded in SQL_ASCII.*Try: create database/],
    ["sends bytes in its old way", { byteaOutput: "escape" }, /bytea_output = escape.*Try: set bytea_output = hex/],
    ["pools by transaction", { settingsLast: false }, /pooler that shares connections by transaction.*Try:/],
    [
      "lets its user create no tables",
      { mayCreateTables: false },
      /not let the user clerk create tables\. Try: alter database relay owner to clerk,/,
    ],
    [
      "lets its user create no tables in a schema of their own",
      { mayCreateTables: false, schema: "hooks" },
      /Try: grant create on schema hooks to clerk,/,
    ],
    [
      "looks for tables where there is no schema",
      { mayCreateTables: false, schema: null },
      /search_path of the user clerk names no schema .*Try: alter database relay reset search_path, or create that schema,/,
    ],
    ["has tables of another user", { otherOwner: "admin" }, /tables of the user admin.*Try: connect as admin/],
    ["drops the deadline", { deadlineHolds: false }, /statement_timeout.*Try:/],
  ])("%s", (_, change, problem) => {
    expect(problemOf({ ...sound, ...change })).toMatch(problem);
  });

  test("loses what it acknowledged, unless a test says that it may", () => {
    expect(problemOf({ ...sound, fsync: false, synchronousCommit: "off" }, "waived")).toBeNull();
  });
});

/** The sentence for the operator. */
const refusal = (url: string, durability: "required" | "waived" = "waived") =>
  checkServer({ url, clock: systemClock, durability }).then(
    () => null,
    (error: unknown) => (error instanceof Error ? `${error.name}: ${error.message}` : error),
  );

describe("where there is no database, the check says", () => {
  test("that nothing listens", async () => {
    const said =
      /^StartupError: The database at 127\.0\.0\.1:1\/postrider does not answer, as nothing listens.*Try: start/;
    expect(await refusal("postgres://127.0.0.1:1/postrider")).toMatch(said);
    expect(await refusal("postgres://localhost/postrider?path=/tmp/no-such-folder")).toMatch(/nothing listens there/);
  });

  test("that there is no host of that name", async () => {
    expect(await refusal("postgres://db.invalid/postrider")).toMatch(
      /cannot be found: db\.invalid is not the name of a host\. Try: correct POSTRIDER_DATABASE_URL/,
    );
  });

  test("that it offers no TLS, if the URL asks for it", async () => {
    const refuseTls = (socket: Bun.Socket) => void socket.write("N");
    const server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: refuseTls } });
    const said = await refusal(`postgres://127.0.0.1:${server.port}/postrider?sslmode=verify-full`);
    server.stop(true);
    expect(said).toMatch(/offers no TLS, .*Try: turn on ssl in postgresql\.conf, or take sslmode out of the URL\.$/);
  });

  test.each([
    ["is not there", "sslrootcert=/nonexistent/ca.pem"],
    ["has none", `sslrootcert=${encodeURIComponent(import.meta.path)}`],
    ["is not there, of the client's own", "sslcert=/nonexistent/client.pem"],
    ["has none, of the client's own", `sslcert=${encodeURIComponent(import.meta.path)}`],
  ])("that the file of a certificate %s, and not that the database is away", async (_, query) => {
    expect(await refusal(`postgres://127.0.0.1:1/postrider?sslmode=verify-full&${query}`)).toMatch(
      /is not asked, as a file that POSTRIDER_DATABASE_URL names .* \(.*\)\. Try: check sslrootcert, sslcert and sslkey in it/,
    );
  });

  test("the same to a server that is about to succeed another one", async () => {
    const look = isOfThisSchema({ url: "postgres://127.0.0.1:1/postrider", clock: systemClock });
    await expect(look).rejects.toThrow(/^The database at 127\.0\.0\.1:1\/postrider does not answer, .*Try:/);
  });
});

describe("of a certificate, the check says", () => {
  const authority = createAuthority("Our own");

  async function withTlsServer<T>(certificate: Certificate, use: (url: string) => Promise<T>): Promise<T> {
    const front = await createTlsFront(certificate);
    try {
      return await use(front.url);
    } finally {
      front.close();
    }
  }

  test.each([
    ["one of an unknown authority", authority.issue({ hosts: ["localhost"] })],
    ["one that vouches for itself", createSelfSigned({ hosts: ["localhost"] })],
  ])("%s: where to name its authority", async (_, certificate) => {
    const said = await withTlsServer(certificate, refusal);
    expect(said).toMatch(
      /nothing vouches for.*Try: name .* in POSTRIDER_DATABASE_URL: …\?sslmode=verify-full&sslrootcert=/,
    );
  });

  test("one for another host: that it is the wrong one", async () => {
    const folder = mkdtempSync(join(tmpdir(), "postrider-authority-"));
    try {
      const file = join(folder, "ca.pem");
      writeFileSync(file, authority.cert);
      const elsewhere = authority.issue({ hosts: ["elsewhere.example"] });
      const said = await withTlsServer(elsewhere, (url) => refusal(`${url}&sslrootcert=${file}`));
      expect(said).toMatch(/has the wrong certificate.*Try: replace it, or correct the host/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describeWithOwnServer("a pooler that shares connections by transaction", () => {
  test("is refused at the start, with what to do", async () => {
    const server = await startFastServer();
    const pooler = await createTransactionPooler(server.url("postgres"));
    const check = checkServer({ url: pooler.url, clock: systemClock, durability: "waived" });
    await expect(check).rejects.toThrow(/pooler that shares connections by transaction\. Try: connect directly/);
    pooler.close();
    await server.remove();
  });
});

describeWithPostgres("the check at the start", () => {
  const postgres = usePostgres();
  const nameOf = (url: string) => new URL(url).pathname.slice(1);
  test("takes a sound server", async () => {
    expect(await refusal(await postgres.database())).toBeNull();
  });

  test.each([
    ["default_transaction_read_only = on", "waived", /is read-only/],
    ["synchronous_commit = off", "required", /(fsync|synchronous_commit) = off/],
    ["bytea_output = escape", "waived", /bytea_output = escape/],
  ] as const)("reads %s from the database itself", async (setting, durability, problem) => {
    const url = await postgres.database();
    await administer(await sharedServer(), `alter database ${nameOf(url)} set ${setting}`);
    expect(await refusal(url, durability)).toMatch(problem);
  });

  test("sees another encoding", async () => {
    const server = await sharedServer();
    const url = await postgres.database();
    const latin = `${nameOf(url)}_latin`;
    await administer(
      server,
      `create database ${latin} encoding 'LATIN1' template template0 lc_collate 'C' lc_ctype 'C'`,
    );
    postgres.cleanUpFirst(() => administer(server, `drop database ${latin} with (force)`).then(() => {}));
    expect(await refusal(server.url(latin))).toMatch(/LATIN1.*Try: create database/);
  });

  test("says which database there is not", async () => {
    const server = await sharedServer();
    const said = await refusal(server.url("not_there"));
    expect(said).toMatch(/^StartupError: .*not_there does not exist .*Try: create it/);
  });

  test("says that a user is refused, and never shows the password", async () => {
    const url = new URL(await postgres.database());
    url.username = "stranger";
    url.password = "a-secret-password";
    const said = await refusal(url.href);
    expect(said).toMatch(/refuses the user.*Try: correct user and password in POSTRIDER_DATABASE_URL/);
    expect(said).not.toContain("a-secret");
  });

  /** A user of its own, with the rights that every user has. */
  async function connectAs(user: string, url: string): Promise<string> {
    const server = await sharedServer();
    await administer(server, `create role "${user}" login`);
    postgres.cleanUpFirst(() => administer(server, `drop role "${user}"`).then(() => {}));
    const there = new URL(url);
    there.username = user;
    return there.href;
  }

  test("says how a database is given to a user who may create nothing in it, and takes it then", async () => {
    const url = await postgres.database();
    const asUser = await connectAs(`clerk-${nameOf(url)}`, url);
    const said = await refusal(asUser);
    expect(said).toMatch(
      /^StartupError: The database at .* does not let the user "clerk-.*" create tables\. Try: alter/,
    );
    const remedy = /Try: (.*), in psql/.exec(String(said))?.[1] ?? "";
    await administer(await sharedServer(), remedy);
    expect(await refusal(asUser)).toBeNull();
    await administer(await sharedServer(), `alter database ${nameOf(url)} owner to current_user`);
  });

  test("says whose the tables are, to a user who may not use them", async () => {
    const url = await postgres.migrated();
    const asUser = await connectAs(`heir-${nameOf(url)}`, url);
    await administer(await sharedServer(), "grant create on schema public to public", nameOf(url));
    expect(await refusal(asUser)).toMatch(
      /^StartupError: .* has tables of the user (\w+), and .*Try: connect as \1\.$/,
    );
  });

  test("says whose limit of connections it may be", async () => {
    const server = await sharedServer();
    const url = new URL(await postgres.database());
    const role = `role_${nameOf(url.href)}`;
    await administer(server, `create role ${role} login connection limit 0 password 'none'`);
    postgres.cleanUpFirst(() => administer(server, `drop role ${role}`).then(() => {}));
    url.username = role;
    url.password = "none";
    expect(await refusal(url.href)).toMatch(
      /no connection left.*Try: raise max_connections, or the limit of that user/,
    );
  });

  test.each(["mysql://localhost/a", "localhost:5432", ""])("takes %j for no URL of a database", async (url) => {
    expect(await refusal(url)).toMatch(/POSTRIDER_DATABASE_URL is not the URL.*Try: POSTRIDER_DATABASE_URL=postgres:/);
  });
});
