import { expect, test } from "bun:test";
import { locateInBucket } from "../../src/backup/bucket.ts";

test("of a store that answers with a page, one line of bounded length is told", async () => {
  const page = `<html>\n<h1>502 Bad Gateway\u001b[31m</h1>\n${"x".repeat(1_000_000)}</html>`;
  const gateway = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(page, { status: 502 }) });
  try {
    const endpoint = `http://127.0.0.1:${gateway.port}`;
    const access = { accessKeyId: "k", secretAccessKey: "s", sessionToken: null, region: "us-east-1", endpoint };
    const { place } = locateInBucket("s3://bucket/prefix", access, { folder: "", leaveFreeBytes: 0 });
    const error = await place.list(0).catch((error: unknown) => error);
    expect(String(error)).toMatch(
      /^StartupError: s3:\/\/bucket\/prefix\/: <html> <h1>502 Bad Gateway \[31m<\/h1> x+….*check the store\.$/,
    );
    expect(String(error).length).toBeLessThan(700);
  } finally {
    await gateway.stop(true);
  }
});
