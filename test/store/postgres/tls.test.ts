import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OutcomeUnknown } from "../../../src/store/postgres/faults.ts";
import { type Certificate, createAuthority, createSelfSigned } from "../../support/certificates.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { createTlsFront } from "../../support/postgres-tls.ts";
import { refusalOf } from "../../support/store-factory.ts";

/** Of a certificate that was accepted when the server started. */
describeWithPostgres("a server whose certificate is no longer accepted", () => {
  const postgres = usePostgres();
  const authority = createAuthority("Our own");
  const hosts = ["localhost"];
  const unavailable = "unavailable storage_unavailable";
  const valid = authority.issue({ hosts });
  const hourMs = 3_600_000;
  const past = (hours: number) => new Date(Date.now() - hours * hourMs);

  async function open() {
    const front = await createTlsFront(valid, await postgres.database());
    const folder = mkdtempSync(join(tmpdir(), "postrider-authority-"));
    writeFileSync(join(folder, "ca.pem"), authority.cert);
    postgres.cleanUpFirst(() => {
      front.close();
      rmSync(folder, { recursive: true });
    });
    const told: unknown[] = [];
    const onFailure = (error: unknown) => void told.push((error as { code?: string }).code);
    const pool = postgres.pool(`${front.url}&sslrootcert=${join(folder, "ca.pem")}`, { onFailure, size: 1 });
    await pool.write("create table kept (a int)");
    return { pool, front, told };
  }

  test.each<[why: string, code: string, certificate: Certificate]>([
    ["expired", "CERT_HAS_EXPIRED", authority.issue({ hosts, notBefore: past(2), notAfter: past(1) })],
    ["not valid yet", "CERT_NOT_YET_VALID", authority.issue({ hosts, notBefore: past(-1), notAfter: past(-2) })],
    ["of another authority", "UNABLE_TO_VERIFY_LEAF_SIGNATURE", createAuthority("Another").issue({ hosts })],
    ["its own", "DEPTH_ZERO_SELF_SIGNED_CERT", createSelfSigned({ hosts })],
    ["another host's", "ERR_TLS_CERT_ALTNAME_INVALID", authority.issue({ hosts: ["elsewhere.example"] })],
  ])("as it is %s: it is unavailable, and told as %s, until it has one that is", async (_, code, certificate) => {
    const { pool, front, told } = await open();
    front.show(certificate);
    // The end of the connection may be noticed only now.
    await refusalOf(pool.read("select 1"));
    told.length = 0;
    expect(await refusalOf(pool.write("insert into kept values (1)"))).toBe(unavailable);
    expect(await refusalOf(pool.transact((tx) => tx.run("insert into kept values (2)")))).toBe(unavailable);
    expect(await refusalOf(pool.read("select a from kept"))).toBe(unavailable);
    expect(told).toEqual([code, code, code]);
    front.show(valid);
    expect(await pool.read("select a from kept")).toEqual([]);
  });

  test("what a garbled connection became of is not known for a write, and is unavailable for a read", async () => {
    const { pool, front, told } = await open();
    front.garbleNext("into kept");
    await expect(pool.write("insert into kept values (1)")).rejects.toBeInstanceOf(OutcomeUnknown);
    front.garbleNext("from kept");
    expect(await refusalOf(pool.read("select a from kept"))).toBe(unavailable);
    expect(told).toEqual(["EPROTO", "EPROTO"]);
  });
});
