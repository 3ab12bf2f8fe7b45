import { describe, expect, test } from "bun:test";
import { clientSettings, settings } from "../../src/settings.ts";
import { load, refusalOf } from "./loaded-config.ts";

describe("a malformed setting names itself, its rule and a valid value", () => {
  test.each([
    ["POSTRIDER_HOST", ""],
    ["POSTRIDER_HOST", "a b"],
    ["POSTRIDER_HOST", "http://x"],
    ["POSTRIDER_PORT", ""],
    ["POSTRIDER_PORT", "http"],
    ["POSTRIDER_PORT", "-1"],
    ["POSTRIDER_PORT", "65536"],
    ["POSTRIDER_PORT", "80.5"],
    ["POSTRIDER_PUBLIC_URL", "relay.example.com"],
    ["POSTRIDER_PUBLIC_URL", "ftp://relay.example.com"],
    ["POSTRIDER_PUBLIC_URL", "https://relay.example.com/path"],
    ["POSTRIDER_PUBLIC_URL", "https://user@relay.example.com"],
    ["POSTRIDER_DATA_DIR", ""],
    ["POSTRIDER_SIGNUP", "yes"],
    ["POSTRIDER_ALLOW_TARGETS", "10.0.0.0/33"],
    ["POSTRIDER_ALLOW_TARGETS", "10.0.0.0/8,"],
    ["POSTRIDER_BLOCK_TARGETS", "10.0.0.0/33"],
    ["POSTRIDER_BLOCK_TARGETS", "10/8"],
    ["POSTRIDER_BLOCK_TARGETS", "10.1/16"],
    ["POSTRIDER_BLOCK_TARGETS", "::ffff:10.0.0.0/104"],
    ["POSTRIDER_BLOCK_TARGETS", "internal.example"],
    ["POSTRIDER_TRUSTED_PROXIES", "localhost"],
    ["POSTRIDER_RETRY_SCHEDULE", ""],
    ["POSTRIDER_RETRY_SCHEDULE", "none,5s"],
    ["POSTRIDER_RETRY_SCHEDULE", "5"],
    ["POSTRIDER_RETRY_SCHEDULE", "5s,,5m"],
    ["POSTRIDER_RETRY_SCHEDULE", "0s"],
    ["POSTRIDER_RETRY_SCHEDULE", Array(101).fill("1s").join(",")],
    ["POSTRIDER_DNS_SERVERS", "dns.example.com"],
    ["POSTRIDER_DNS_SERVERS", "1.1.1"],
    ["POSTRIDER_DNS_SERVERS", "999.1.1.1"],
    ["POSTRIDER_DNS_SERVERS", "dead"],
    ["POSTRIDER_DNS_SERVERS", "1.1.1.1:99999"],
    ["POSTRIDER_DNS_SERVERS", "1.1.1.1:0"],
    ["POSTRIDER_DNS_SERVERS", "[1.1.1.1]:53"],
    ["POSTRIDER_DNS_SERVERS", "[1.1.1.1]"],
    ["POSTRIDER_DNS_SERVERS", "[::1"],
    ["POSTRIDER_DNS_SERVERS", "[::g]:53"],
    ["POSTRIDER_DNS_SERVERS", "::1%eth0"],
    ["POSTRIDER_DNS_SERVERS", "1.1.1.1,"],
    ["POSTRIDER_MAX_BODY", "5MiB"],
    ["POSTRIDER_MAX_BODY", "1023"],
    ["POSTRIDER_MAX_BODY", "256KB"],
    ["POSTRIDER_MIN_FREE_DISK", "much"],
    ["POSTRIDER_WEBHOOK_CONCURRENCY", "0"],
    ["POSTRIDER_WEBHOOK_CONCURRENCY", "513"],
    ["POSTRIDER_DELIVERY_RATE", ""],
    ["POSTRIDER_DELIVERY_RATE", "100"],
    ["POSTRIDER_DELIVERY_RATE", "free=0"],
    ["POSTRIDER_DELIVERY_RATE", "free=1.5"],
    ["POSTRIDER_DELIVERY_RATE", "free=10,free=20"],
    ["POSTRIDER_DELIVERY_RATE", "gold=10"],
    ["POSTRIDER_DELIVERY_RATE", "free=10=20"],
    ["POSTRIDER_DELIVERY_RATE", "free=10,"],
    ["POSTRIDER_PAYMENTS", "stripe"],
    ["POSTRIDER_PAYSTACK_URL", "http://api.paystack.co"],
    ["POSTRIDER_PAYSTACK_URL", "https://user@api.paystack.co"],
    ["POSTRIDER_BILLING_TZ", "Africa/Atlantis"],
    ["POSTRIDER_PRICE_PRO", "15,000"],
    ["POSTRIDER_PRICE_PRO", "-1"],
    ["POSTRIDER_PRICE_BUSINESS", "60000.005"],
    ["POSTRIDER_LOG_LEVEL", "verbose"],
    ["POSTRIDER_LOG_FORMAT", "xml"],
  ])("%s=%p", (name, value) => {
    const { rule, example } = Object.values(settings).find(({ env }) => env === name) ?? {};
    expect(refusalOf({ [name]: value })).toBe(`${name} must be ${rule}, not "${value}". Try: ${name}=${example}`);
  });

  test.each([
    ["POSTRIDER_LOG_LEVEL", "trace", "debug, info, warn or error"],
    ["POSTRIDER_PORT", "99999", "a whole number from 0 to 65535"],
    ["POSTRIDER_MAX_BODY", "10MB", "a whole number of bytes, KiB, MiB or GiB, from 1KiB to 4MiB"],
    ["POSTRIDER_RETENTION_MAX_BYTES", "1MiB", "none or a whole number of bytes, KiB, MiB or GiB, at least 64MiB"],
    ["POSTRIDER_RETENTION", "5m", "none or a whole number of h or d, from 1h to 3650d"],
    ["POSTRIDER_DELIVERY_RATE", "gold=1", "its rate none or a whole number from 1 to 100000"],
  ])("%s=%s is told the rule: %s", (name, value, rule) => {
    expect(refusalOf({ [name]: value })).toContain(`${rule}, not "${value}". Try: ${name}=`);
  });

  test("an example that a shell would take apart is in quotes", () => {
    expect(refusalOf({ POSTRIDER_BACKUP_CRON: "at three" })).toEndWith("Try: POSTRIDER_BACKUP_CRON='0 3 * * *'");
  });

  test("a flag is named by its flag", () => {
    expect(refusalOf({}, { "--port": "x" })).toEndWith(', not "x". Try: --port 8080');
  });

  test.each([...Object.values(settings), ...Object.values(clientSettings)].map((one) => [one.env, one] as const))(
    "the rule of %s has the limits that the help names",
    (_, { doc, rule }) => {
      const limits = [...doc.matchAll(/at (?:least|most) (\w+)/gi)].map(([, limit = ""]) => limit);
      expect(limits.filter((limit) => !rule.includes(limit))).toEqual([]);
    },
  );

  const password = "s3cret-of-the-database";
  test.each([
    ["postgres://relay:PW@db.internal:5432/postrider", true],
    ["postgresql://relay:PW@db.internal/postrider?sslmode=verify-full", true],
    ["postgres://relay:PW@localhost/postrider?path=/run/postgresql", true],
    ["postgres://relay:PW@db.internal/postrider?sslmode=verify-ca&sslrootcert=/etc/db-ca.pem", true],
    ["postgres://relay:PW@db.internal/postrider?sslmode=foo", false],
    ["postgres://relay:PW@db.internal", false],
    ["postgres://relay:PW@one,two/postrider", false],
    ["mysql://relay:PW@db.internal/postrider", false],
    ["db.internal PW", false],
  ])("POSTRIDER_DATABASE_URL %s: taken %p, and its password is never shown", (form, taken) => {
    const url = form.replace("PW", password);
    if (taken) expect(load({ POSTRIDER_DATABASE_URL: url }).databaseUrl).toBe(url);
    else {
      const refusal = refusalOf({ POSTRIDER_DATABASE_URL: url });
      expect(refusal).toStartWith("POSTRIDER_DATABASE_URL must be postgres://");
      expect(refusal).not.toContain(password);
    }
  });

  test.each(["POSTRIDER_TLS_CERT", "POSTRIDER_TLS_KEY"])("%s alone", (name) => {
    expect(refusalOf({ [name]: "/x.pem" })).toBe(
      "POSTRIDER_TLS_CERT and POSTRIDER_TLS_KEY must be set together. Try: set both, or neither.",
    );
  });

  test("one port for both the server and its health probes", () => {
    expect(refusalOf({ POSTRIDER_PORT: "8443", POSTRIDER_HEALTH_PORT: "8443" })).toBe(
      "POSTRIDER_PORT and POSTRIDER_HEALTH_PORT are both 8443, but each needs a port of its own. " +
        "Try: another POSTRIDER_HEALTH_PORT, such as 8081.",
    );
    expect(load({ POSTRIDER_PORT: "0", POSTRIDER_HEALTH_PORT: "0" })).toMatchObject({ port: 0, healthPort: 0 });
  });
});
