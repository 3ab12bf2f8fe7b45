import { describe, expect, test } from "bun:test";
import { runCommand } from "../../src/cli/run.ts";
import { createScriptedIo } from "../support/scripted-io.ts";

async function check(url: string, env: Record<string, string> = {}, ...flags: string[]) {
  const { io, out, err } = createScriptedIo({ env });
  const code = await runCommand(["check-url", url, ...flags], io);
  return { code, out: out.join("\n"), err };
}

const report = async (url: string, env: Record<string, string> = {}): Promise<Record<string, unknown>> => {
  const { code, out } = await check(url, env, "--json");
  return { code, ...(JSON.parse(out) as Record<string, unknown>) };
};

const publicMode = { POSTRIDER_PUBLIC_URL: "https://relay.example.com" };
const inside = { ...publicMode, POSTRIDER_SIGNUP: "closed", POSTRIDER_ALLOW_TARGETS: "10.0.0.0/8" };

const proxied = { ...publicMode, POSTRIDER_DELIVERY_PROXY: "http://127.0.0.1:1" };

describe("check-url", () => {
  test("leaves the addresses of a name to the delivery proxy, and judges those in a URL", async () => {
    expect(await report("https://receiver.example/", proxied)).toMatchObject({
      ...{ code: 0, allowed: true, addresses: [], reason: expect.stringContaining("POSTRIDER_DELIVERY_PROXY") },
    });
    expect(await report("https://10.1.2.3/", proxied)).toMatchObject({ code: 1, rule: "address_not_public" });
  });

  test.each([
    ["https://93.184.216.34/hook", {}],
    ["https://93.184.216.34/hook", publicMode],
    ["http://127.0.0.1:9000/hook", {}],
    ["http://localhost:9000/hook", {}],
    ["http://10.1.2.3/hook", inside],
  ] as [string, Record<string, string>][])("%s is allowed with %p", async (url, env) => {
    expect(await report(url, env)).toMatchObject({ code: 0, allowed: true, rule: null });
  });

  test.each([
    ["ftp://example.com", {}, "url_scheme"],
    ["https://user:secret@example.com", {}, "url_credentials"],
    ["https://10.1.2.3/hook", {}, "address_not_public"],
    ["https://[::ffff:169.254.169.254]/", inside, "address_not_public"],
    ["https://printer/", {}, "host_single_label"],
    ["https://a.internal/", {}, "host_special_use"],
    ["https://example.com:22/", {}, "port_blocked"],
    ["http://127.0.0.1:9000/hook", publicMode, "http_not_allowed"],
    ["http://localhost:8080/hook", {}, "own_listener"],
    ["https://relay.example.com/hook", publicMode, "own_listener"],
  ] as [string, Record<string, string>, string][])("%s is refused with %p: %s", async (url, env, rule) => {
    expect(await report(url, env)).toMatchObject({ code: 1, allowed: false, rule, addresses: [] });
  });

  test("lists each address with its verdict", async () => {
    expect(await report("http://localhost:9000/hook")).toEqual({
      code: 0,
      url: "http://localhost:9000/hook",
      allowed: true,
      mode: "local",
      rule: null,
      reason: "Deliveries to this URL are allowed.",
      addresses: [
        { address: "127.0.0.1", allowed: true, rule: null },
        { address: "::1", allowed: true, rule: null },
      ],
    });
  });

  test("explains itself to people", async () => {
    expect((await check("https://10.1.2.3/hook")).out).toBe(
      "refused  https://10.1.2.3/hook\n" +
        "  webhook_url must have a public address, not a private, local or reserved one.\n" +
        "  Rule address_not_public, in local mode.",
    );
  });

  test("takes flags as the server does", async () => {
    const { out } = await check("http://localhost:9000/hook", {}, "--port=9000");
    expect(out).toContain("own_listener");
  });

  test("needs a URL", async () => {
    const { io, err } = createScriptedIo();
    expect(await runCommand(["check-url"], io)).toBe(2);
    expect(err).toEqual(['postrider: "postrider check-url" needs URL. Try: postrider check-url URL']);
  });
});
