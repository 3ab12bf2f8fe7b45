import { describe, expect, test } from "bun:test";
import { loadClientConfig } from "../../src/config.ts";
import { settings } from "../../src/settings.ts";
import { load, refusalOf } from "./loaded-config.ts";

describe("loadConfig", () => {
  test("has the documented defaults", () => {
    expect(load()).toEqual({
      host: "127.0.0.1",
      port: 8080,
      healthPort: null,
      tls: null,
      publicUrl: null,
      dataDir: "./postrider-data",
      databaseUrl: null,
      checkpoints: "own",
      masterKeyFile: null,
      nodeName: null,
      signup: "open",
      allowTargets: [],
      blockTargets: [],
      trustedProxies: [],
      metricsToken: null,
      retryScheduleMs: [5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 36_000_000],
      disableAfterMs: 432_000_000,
      dnsServers: [],
      extraCa: null,
      deliveryProxy: null,
      maxBodyBytes: 256 * 1024,
      minFreeDiskBytes: 256 * 2 ** 20,
      retentionMs: null,
      retentionPayloadsMs: null,
      retentionMaxBytes: null,
      paused: [],
      backupUrl: null,
      backupRecipients: [],
      backupCron: null,
      backupKeep: 7,
      s3: null,
      webhookConcurrency: 16,
      deliveryRates: { free: null, pro: null, business: null, enterprise: null },
      bulkReplaysPerDay: null,
      payments: { kind: "sandbox" },
      billingTimeZone: "Africa/Lagos",
      proPriceKobo: 1_500_000,
      businessPriceKobo: 6_000_000,
      logLevel: "info",
      logFormat: "auto",
      localMode: true,
      mail: null,
      foreignVariables: [],
    });
  });

  test("in public mode the deliveries of an account have a rate by its plan; in local mode they never do", () => {
    const rates = (env: Record<string, string> = {}) =>
      load({ POSTRIDER_PUBLIC_URL: "https://relay.example.com", ...env }).deliveryRates;
    expect(rates()).toEqual({ free: 100, pro: 1_000, business: 2_500, enterprise: null });
    expect(rates({ POSTRIDER_DELIVERY_RATE: "pro=none, free=7" })).toEqual({
      free: 7,
      pro: null,
      business: 2_500,
      enterprise: null,
    });
    expect(load({ POSTRIDER_DELIVERY_RATE: "free=7" }).deliveryRates.free).toBeNull();
  });

  test("without retries, there is one attempt", () => {
    expect(load({ POSTRIDER_RETRY_SCHEDULE: "none" }).retryScheduleMs).toEqual([]);
  });

  test("a resolver is an IP address, with or without a port", () => {
    const dnsServers = ["1.1.1.1", "9.9.9.9:53", "::1", "[2606:4700::1111]", "[::1]:65535"];
    expect(load({ POSTRIDER_DNS_SERVERS: dnsServers.join(", ") }).dnsServers).toEqual(dnsServers);
  });

  test("a flag stands above the environment, which stands above the default", () => {
    expect(load({ POSTRIDER_PORT: "81" }).port).toBe(81);
    expect(load({ POSTRIDER_PORT: "81" }, { "--port": "82" }).port).toBe(82);
  });

  test.each(Object.entries(settings).map(([name, setting]) => [name, setting] as const))(
    "the default and the example of %s are valid",
    (_name, { default: byDefault, example, parse }) => {
      expect(parse(byDefault)).not.toBeNull();
      expect(parse(example)).not.toBeNull();
    },
  );

  test("neither an identity of age nor somebody else's key comes of a recipient that is none", () => {
    for (const [given, shown] of [
      ["age1abc", ', not "age1abc"'],
      ["AGE-SECRET-KEY-1QQQ", ""],
    ]) {
      expect(refusalOf({ POSTRIDER_BACKUP_AGE_RECIPIENT: given ?? "" })).toBe(
        `POSTRIDER_BACKUP_AGE_RECIPIENT must be public keys of age (age1…), comma-separated${shown}. Try: the public key that age-keygen prints, age1…; ` +
          "the line AGE-SECRET-KEY-… stays away from the server",
      );
    }
  });

  test("the environment of other programs does not matter", () => {
    expect(() => load({ PORT: "x", POSTRIDERS: "x", HOME: "/" })).not.toThrow();
  });

  test.each([
    ["POSTRIDER_PRT", "8080", "POSTRIDER_PORT, or "],
    ["POSTRIDER_port", "1", "POSTRIDER_PORT, or "],
    ["POSTRIDER_METRIC_TOKEN", "1", "POSTRIDER_METRICS_TOKEN, or "],
    ["POSTRIDER_SERVICE_HOTS", "10.0.0.1", ""],
    ["POSTRIDER_", "1", ""],
    ["POSTRIDER_COLOUR_SCHEME", "1", ""],
  ])("%s is no setting, and the nearest one is named", (name, value, hint) => {
    expect(refusalOf({ [name]: value })).toBe(
      `${name} is not a setting. Try: ${hint}postrider help, which lists them all.`,
    );
  });
});

describe("variables of a container platform", () => {
  /** Of a service called "postrider", of one called "postrider-web", and of a linked container. */
  const platform = {
    POSTRIDER_SERVICE_HOST: "10.96.0.12",
    POSTRIDER_SERVICE_PORT: "8080",
    POSTRIDER_SERVICE_PORT_HTTP: "8080",
    POSTRIDER_PORT: "tcp://10.96.0.12:8080",
    POSTRIDER_PORT_8080_TCP: "tcp://10.96.0.12:8080",
    POSTRIDER_PORT_8080_TCP_PROTO: "tcp",
    POSTRIDER_PORT_8080_TCP_PORT: "8080",
    POSTRIDER_PORT_8080_TCP_ADDR: "10.96.0.12",
    POSTRIDER_WEB_SERVICE_HOST: "fd00::12",
    POSTRIDER_WEB_PORT: "udp://[fd00::12]:53",
    POSTRIDER_NAME: "/web/postrider",
    POSTRIDER_ENV_PATH: "/usr/bin",
  };

  test("stop nothing, and are named", () => {
    const { port, foreignVariables } = load(platform);
    expect(port).toBe(8080);
    expect(foreignVariables).toEqual(Object.keys(platform));
    expect(() => loadClientConfig(platform, new Map())).not.toThrow();
  });

  test("a setting beside them counts", () => {
    expect(load({ ...platform, POSTRIDER_PORT: "81" }).port).toBe(81);
    expect(load(platform, { "--port": "82" }).port).toBe(82);
  });

  test.each([
    ["POSTRIDER_SERVICE_HOST", "relay.example.com"],
    ["POSTRIDER_SERVICE_PORT", "http"],
    ["POSTRIDER_PORT_8080", "8080"],
    ["POSTRIDER_NAME", "relay"],
  ])("%s=%s is none of theirs", (name, value) => {
    expect(refusalOf({ [name]: value })).toStartWith(`${name} is not a setting.`);
  });

  test("a port that is neither is refused as before", () => {
    expect(refusalOf({ POSTRIDER_PORT: "http://10.96.0.12" })).toStartWith("POSTRIDER_PORT must be a whole number");
  });
});

describe("mail", () => {
  const smtp = { POSTRIDER_SMTP_URL: "smtp://relay:p%40ss@mail.example.com", POSTRIDER_MAIL_FROM: "relay@example.com" };

  test("is on with an SMTP server and a sender, and tells whom the operator names", () => {
    expect(load({ ...smtp, POSTRIDER_OPERATOR_MAIL: "a@example.com, b@example.com" }).mail).toEqual({
      smtpUrl: smtp.POSTRIDER_SMTP_URL,
      from: "relay@example.com",
      operators: ["a@example.com", "b@example.com"],
    });
  });

  test.each([
    [{ POSTRIDER_SMTP_URL: smtp.POSTRIDER_SMTP_URL }, "must be set together"],
    [{ POSTRIDER_MAIL_FROM: smtp.POSTRIDER_MAIL_FROM }, "must be set together"],
    [{ POSTRIDER_OPERATOR_MAIL: "a@example.com" }, "none can be sent"],
    [{ ...smtp, POSTRIDER_SMTP_URL: "http://mail.example.com" }, "POSTRIDER_SMTP_URL"],
    [{ ...smtp, POSTRIDER_SMTP_URL: "smtp://relay@mail.example.com" }, "POSTRIDER_SMTP_URL"],
    [{ ...smtp, POSTRIDER_SMTP_URL: "smtp://relay:50%@mail.example.com" }, "POSTRIDER_SMTP_URL"],
    [{ ...smtp, POSTRIDER_MAIL_FROM: "Postrider" }, "POSTRIDER_MAIL_FROM"],
    [{ ...smtp, POSTRIDER_OPERATOR_MAIL: "ops" }, "POSTRIDER_OPERATOR_MAIL"],
  ])("%o stops the start, without a password", (env, words) => {
    const refusal = refusalOf(env);
    expect(refusal).toContain(words);
    expect(refusal).not.toMatch(/p%40ss|50%/);
  });
});

describe("local mode", () => {
  const url = "https://relay.example.com";

  test.each([
    [{}, true],
    [{ POSTRIDER_HOST: "localhost" }, true],
    [{ POSTRIDER_HOST: "::1" }, true],
    [{ POSTRIDER_HOST: "127.0.0.2", POSTRIDER_PUBLIC_URL: "http://[::1]:8080" }, true],
    [{ POSTRIDER_PUBLIC_URL: url }, false],
    [{ POSTRIDER_HOST: "0.0.0.0", POSTRIDER_PUBLIC_URL: url }, false],
    [{ POSTRIDER_HOST: "0.0.0.0", POSTRIDER_PUBLIC_URL: "http://localhost:8080" }, false],
    [{ POSTRIDER_PUBLIC_URL: "http://localhost.example.com" }, false],
  ] as [Record<string, string>, boolean][])("with %p: %p", (env, localMode) => {
    expect(load(env).localMode).toBe(localMode);
  });

  test.each(["0.0.0.0", "::", "10.0.0.5", "relay.example.com"])("a listener on %s needs a public URL", (host) => {
    expect(refusalOf({ POSTRIDER_HOST: host })).toBe(
      `POSTRIDER_HOST=${host} accepts connections from other machines, so the server must know its public address. ` +
        "Try: POSTRIDER_PUBLIC_URL=https://relay.example.com",
    );
  });

  test("in public mode, inside targets need closed sign-up", () => {
    const env = { POSTRIDER_PUBLIC_URL: url, POSTRIDER_ALLOW_TARGETS: "10.0.0.0/8" };
    expect(refusalOf(env)).toEndWith("Try: POSTRIDER_SIGNUP=closed");
    expect(load({ ...env, POSTRIDER_SIGNUP: "closed" }).allowTargets).toEqual(["10.0.0.0/8"]);
    expect(load({ POSTRIDER_ALLOW_TARGETS: "10.0.0.0/8" }).localMode).toBe(true);
  });
});

describe("payments", () => {
  const publicMode = { POSTRIDER_PUBLIC_URL: "https://relay.example.com" };
  const testKey = { POSTRIDER_PAYSTACK_SECRET_KEY: "sk_test_0123456789abcdef" };
  const liveKey = { POSTRIDER_PAYSTACK_SECRET_KEY: "sk_live_0123456789abcdef" };

  test.each([
    ["a laptop has the sandbox", {}, "sandbox"],
    ["a public server has none", publicMode, "off"],
    [
      "a public server has the sandbox if asked for by name",
      { ...publicMode, POSTRIDER_PAYMENTS: "sandbox" },
      "sandbox",
    ],
    ["a key switches to Paystack", { ...publicMode, ...liveKey }, "paystack"],
    ["so it does on a laptop", testKey, "paystack"],
    ["they can be switched off", { ...testKey, POSTRIDER_PAYMENTS: "off" }, "off"],
    ["the sandbox stands beside a test key", { ...testKey, POSTRIDER_PAYMENTS: "sandbox" }, "sandbox"],
  ])("%s", (_, env: Record<string, string>, kind) => {
    expect(load(env).payments.kind).toBe(kind as "off");
  });

  test("an earlier key follows the one in use", () => {
    const keys = { POSTRIDER_PAYSTACK_SECRET_KEY: "sk_live_newer, sk_live_older" };
    expect(load(keys).payments).toEqual({
      kind: "paystack",
      secretKeys: ["sk_live_newer", "sk_live_older"],
      baseUrl: "https://api.paystack.co",
    });
  });

  test("Paystack needs its key", () => {
    expect(refusalOf({ POSTRIDER_PAYMENTS: "paystack" })).toContain("Try: POSTRIDER_PAYSTACK_SECRET_KEY=");
  });

  test("the sandbox does not run beside a live key", () => {
    expect(refusalOf({ ...liveKey, POSTRIDER_PAYMENTS: "sandbox" })).toContain("no real money");
    const formerlyLive = { POSTRIDER_PAYSTACK_SECRET_KEY: "sk_test_0123456789abcdef,sk_live_0123456789abcdef" };
    expect(refusalOf({ ...formerlyLive, POSTRIDER_PAYMENTS: "sandbox" })).toContain("no real money");
  });

  test("a key that is not valid is not shown", () => {
    const refusal = refusalOf({ POSTRIDER_PAYSTACK_SECRET_KEY: "pk_live_0123456789abcdef" });
    expect(refusal).toContain("POSTRIDER_PAYSTACK_SECRET_KEY must be secret keys of Paystack");
    expect(refusal).not.toContain("pk_live");
  });

  test.each([
    ["15000", 1_500_000],
    ["0.5", 50],
    ["99.99", 9_999],
  ])("a price of %s naira is %i kobo", (naira, kobo) => {
    expect(load({ POSTRIDER_PRICE_PRO: naira }).proPriceKobo).toBe(kobo);
  });
});
