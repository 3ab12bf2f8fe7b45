import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import { startTestApp, type TestApp } from "../support/test-app.ts";

let server: TestApp;

beforeAll(async () => {
  server = await startTestApp();
});

afterAll(() => server.stop());

describe("the dashboard's page", () => {
  test.each([
    "/",
    "/events",
    "/events/evt_01jc8x2m4e7n9q3s5v7y9a1c3e",
    "/webhooks",
    "/webhooks/wh_1",
    "/inbox/anything",
    "/plan",
  ])("is at %s, and its headers let in no script but our own", async (path) => {
    const answer = await server.request("GET", path);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const policy = answer.headers.get("content-security-policy") ?? "";
    expect(policy.split("; ").sort()).toEqual([
      "base-uri 'none'",
      "connect-src 'self'",
      "default-src 'none'",
      "font-src 'self'",
      "form-action 'self'",
      "frame-ancestors 'none'",
      "img-src 'self' data:",
      "require-trusted-types-for 'script'",
      "script-src 'self'",
      "style-src 'self'",
    ]);
    expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
    expect(answer.headers.get("cross-origin-opener-policy")).toBe("same-origin");
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    expect(answer.text).not.toMatch(/<script>|<style|style=|onload/);
  });

  test("names a script and a style, which come compressed and may be kept for ever", async () => {
    const { text } = await server.request("GET", "/");
    const files = [...text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path = ""]) => path);
    expect(files.map((file) => file.split(".").pop()).sort()).toEqual(["css", "js"]);
    for (const file of files) {
      const answer = await fetch(server.url + file, { decompress: false });
      expect(answer.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
      expect(answer.headers.get("content-encoding")).toBe("gzip");
      expect(answer.headers.get("content-type")).toStartWith(file.endsWith("css") ? "text/css" : "text/javascript");
      expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
      expect(gunzipSync(await answer.bytes()).length).toBeGreaterThan(1000);
    }
  });

  test.each(["/v1", "/v1/nothing", "/nothing", "/assets/nothing.js", "/assets/..%2findex.html"])(
    "is not at %s",
    async (path) => {
      const answer = await server.request("GET", path);
      expect({ status: answer.status, code: answer.body.code }).toEqual({ status: 404, code: "unknown_path" });
    },
  );
});
