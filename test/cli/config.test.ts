import { describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadClientConfig, loadConfig } from "../../src/config.ts";
import { StartupError } from "../../src/domain/errors.ts";
import { fileVariable } from "../../src/given-settings.ts";
import { clientSettings, settings } from "../../src/settings.ts";
import { createAuthority, createSelfSigned } from "../support/certificates.ts";

const load = (env: Record<string, string> = {}, flags: Record<string, string> = {}) =>
  loadConfig(env, new Map(Object.entries(flags)));

function refusalOf(env: Record<string, string>, flags: Record<string, string> = {}): string {
  try {
    load(env, flags);
  } catch (error) {
    expect(error).toBeInstanceOf(StartupError);
    return (error as StartupError).message;
  }
  throw new Error("the configuration was accepted");
}

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

describe("a setting from a file", () => {
  const token = "scrape-4d1f9a7c2b60e85317aa";
  const variable = "POSTRIDER_METRICS_TOKEN_FILE";
  const fileWith = (content: string, mode = 0o600) => {
    const file = join(mkdtempSync(join(tmpdir(), "postrider-token-")), "token");
    writeFileSync(file, content, { mode });
    chmodSync(file, mode);
    return file;
  };

  test("is what is written there, without the end of the line", () => {
    for (const content of [token, `${token}\n`, `${token}\r\n`]) {
      expect(load({ [variable]: fileWith(content) }).metricsToken).toBe(token);
    }
    expect(load({ POSTRIDER_METRICS_TOKEN: token }).metricsToken).toBe(token);
  });

  test.each([...Object.values(settings), ...Object.values(clientSettings)].map((each) => [each.env, each] as const))(
    "%s may be in one if it is a secret or an address, and else not",
    (env, setting) => {
      const isAddress = /^\w+:\/\//.test(setting.example);
      expect(fileVariable(setting)).toBe(isAddress || setting.isSecret ? `${env}_FILE` : null);
      const given = { [`${env}_FILE`]: fileWith(setting.example) };
      const beside = env === settings.smtpUrl.env ? { [settings.mailFrom.env]: settings.mailFrom.example } : {};
      if (fileVariable(setting)) expect(() => load({ ...beside, ...given })).not.toThrow();
      else expect(refusalOf(given)).toStartWith(`${env}_FILE is not a setting. Try: `);
    },
  );

  test("is overridden by the flag, and cannot be beside the variable", () => {
    const file = fileWith("https://file.example");
    expect(load({ POSTRIDER_PUBLIC_URL_FILE: file }).publicUrl).toBe("https://file.example");
    const flag = { "--public-url": "https://flag.example" };
    expect(load({ POSTRIDER_PUBLIC_URL_FILE: file }, flag).publicUrl).toBe("https://flag.example");
    expect(refusalOf({ POSTRIDER_METRICS_TOKEN: token, [variable]: fileWith(token) })).toBe(
      "POSTRIDER_METRICS_TOKEN and POSTRIDER_METRICS_TOKEN_FILE are both set. Try: remove one of the two.",
    );
    expect(load({ POSTRIDER_METRICS_TOKEN: "", [variable]: fileWith(token) }).metricsToken).toBe(token);
  });

  test.each([["short"], [token.slice(0, 23)], ["with a space 0123456789abcdef"], ["ünïcode-0123456789abcdef"]])(
    "%p is no metrics token, and is not shown",
    (text) => {
      for (const refusal of [refusalOf({ POSTRIDER_METRICS_TOKEN: text }), refusalOf({ [variable]: fileWith(text) })]) {
        expect(refusal).toMatch(/^POSTRIDER_METRICS_TOKEN.* 24 to 512 printable .* Try: /);
        expect(refusal).not.toContain(text);
      }
    },
  );

  test.each([
    ["POSTRIDER_PUBLIC_URL", "https://ada:s3cr@t@relay.example"],
    ["POSTRIDER_PAYSTACK_URL", "https://ada:s3cr@t@pay.example"],
    ["POSTRIDER_BACKUP_URL", "s3://ada:s3cr@t@backups/x"],
  ])("a password in %s is refused, and not shown", (name, url) => {
    const refusal = refusalOf({ [name]: url });
    expect(refusal).toContain(url.replace("s3cr@t", "…"));
    expect(refusal).not.toMatch(/s3cr|@t/);
  });

  test("that is empty or missing stops the start and is named", () => {
    const file = fileWith("\n");
    expect(refusalOf({ [variable]: file })).toBe(
      `${variable} names a file that is empty: ${file}. Try: write the value of POSTRIDER_METRICS_TOKEN into it.`,
    );
    expect(refusalOf({ [variable]: "/nowhere" })).toStartWith(
      `${variable} names a file that cannot be read: /nowhere (`,
    );
    expect(load({ [variable]: "" }).metricsToken).toBeNull();
  });

  test("that others can read or change stops the start", () => {
    expect(refusalOf({ [variable]: fileWith(token, 0o640) })).toMatch(
      /accessible to other users.*0640.*Try: chmod 0600/,
    );
    expect(refusalOf({ [variable]: fileWith(token, 0o622) })).toMatch(/other users can change.*Try: chmod 0600/);
    const url = "https://relay.example.com";
    expect(load({ POSTRIDER_PUBLIC_URL_FILE: fileWith(url, 0o644) }).publicUrl).toBe(url);
    expect(refusalOf({ POSTRIDER_PUBLIC_URL_FILE: fileWith(url, 0o666) })).toMatch(/other users can change/);
  });

  test("that is a link is followed", () => {
    const file = fileWith(token);
    symlinkSync(file, `${file}.link`);
    expect(load({ [variable]: `${file}.link` }).metricsToken).toBe(token);
  });

  test("is one of a client's, too", () => {
    const env = { POSTRIDER_PASSWORD_FILE: fileWith("Corr3ct#Horse\n") };
    expect(loadClientConfig(env, new Map())).toMatchObject({ password: "Corr3ct#Horse" });
  });
});

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

  test("files that cannot be read", () => {
    const start = (name: string) => `${name} names a file that cannot be read: /nowhere.pem. Try: `;
    expect(refusalOf({ POSTRIDER_EXTRA_CA_FILE: "/nowhere.pem" })).toStartWith(start("POSTRIDER_EXTRA_CA_FILE"));
    expect(refusalOf({ POSTRIDER_TLS_CERT: "/nowhere.pem", POSTRIDER_TLS_KEY: "/x" })).toStartWith(
      start("POSTRIDER_TLS_CERT"),
    );
  });

  describe("certificate authorities", () => {
    const [one, other] = [createAuthority("one"), createAuthority("other")];
    const { key } = createSelfSigned({ hosts: ["localhost"] });
    const der = Buffer.from(one.cert.replace(/-----.+-----/g, ""), "base64");
    const fileWith = (contents: string | Buffer): string => {
      const file = join(mkdtempSync(join(tmpdir(), "ca-")), "ca.pem");
      writeFileSync(file, contents);
      return file;
    };

    test.each([
      ["nothing", "", "It contains no certificate in PEM"],
      ["another text", "relay-1\n", "It contains no certificate in PEM"],
      ["DER", der, "It contains no certificate in PEM"],
      ["a key", key, "It contains no certificate in PEM"],
      [
        "a label that TLS passes over",
        one.cert.replaceAll("CERT", "TRUSTED CERT"),
        "It contains no certificate in PEM",
      ],
      ["one cut short", one.cert.slice(0, 200), "The certificate number 1 cannot be read"],
      ["a second one cut short", one.cert + other.cert.slice(0, 200), "The certificate number 2 cannot be read"],
      ["one without its end", one.cert.replace(/-----END.*\n/, "") + other.cert, "The certificate number 1 cannot"],
    ])("%s is refused", (_what, contents, fault) => {
      const file = fileWith(contents);
      const refusal = refusalOf({ POSTRIDER_EXTRA_CA_FILE: file });
      expect(refusal).toStartWith(`POSTRIDER_EXTRA_CA_FILE names a file that cannot be used: ${file} (${fault}`);
      expect(refusal).toEndWith(
        "Try: certificates in PEM; openssl x509 -inform der -in ca.der -out ca.pem converts one that is not.",
      );
    });

    test.each([
      ["one", one.cert],
      ["several, with comments", `# ours\n${one.cert}\n# theirs\n${other.cert}`],
      ["one after its key", key + one.cert],
      ["one with the older label", one.cert.replaceAll("CERT", "X509 CERT")],
      ["one of Windows", `\ufeff${one.cert.replaceAll("\n", "\r\n")}`],
    ])("%s: accepted as written", (_what, contents) => {
      expect(load({ POSTRIDER_EXTRA_CA_FILE: fileWith(contents) }).extraCa).toBe(contents);
    });
  });
});

test.skipIf(process.platform === "win32").each([
  [0o600, []],
  [0o640, []],
  [
    0o644,
    [
      expect.stringMatching(
        /^POSTRIDER_TLS_KEY names a file that every user can read: .*key\.pem \(mode 0644\)\. Try: /,
      ),
    ],
  ],
])("a TLS key of mode %o is accepted, with a warning where everyone can read it", (mode, expected) => {
  const folder = mkdtempSync(join(tmpdir(), "tls-"));
  const { cert, key } = createSelfSigned({ hosts: ["localhost"] });
  const env = { POSTRIDER_TLS_CERT: join(folder, "cert.pem"), POSTRIDER_TLS_KEY: join(folder, "key.pem") };
  writeFileSync(env.POSTRIDER_TLS_CERT, cert);
  writeFileSync(env.POSTRIDER_TLS_KEY, key);
  chmodSync(env.POSTRIDER_TLS_KEY, mode);
  const warnings: string[] = [];
  expect(loadConfig(env, new Map(), (message) => void warnings.push(message)).tls?.key).toBe(key);
  expect(warnings).toEqual(expected);
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

describe("the settings of clients", () => {
  const loadClient = (env: Record<string, string> = {}, flags: Record<string, string> = {}) =>
    loadClientConfig(env, new Map(Object.entries(flags)));

  test("have the documented defaults", () => {
    expect(loadClient()).toEqual({
      url: "http://localhost:8080",
      login: null,
      password: null,
      token: null,
      apiKey: null,
      typedLogin: null,
    });
  });

  test.each(Object.values(clientSettings).map((setting) => [setting.env, setting] as const))(
    "%s has a valid default and example, and stops no server",
    (env, { default: byDefault, example, parse }) => {
      expect(parse(byDefault)).not.toBeNull();
      expect(parse(example)).not.toBeNull();
      expect(load({ [env]: "whatever" })).toEqual(load());
    },
  );

  test("a server's settings stop no client, and a slip of the hand does", () => {
    expect(loadClient({ POSTRIDER_PORT: "8081", POSTRIDER_SIGNUP: "closed" })).toEqual(loadClient());
    expect(() => loadClient({ POSTRIDER_PASWORD: "x" })).toThrow("POSTRIDER_PASWORD is not a setting.");
  });

  test("a flag stands above the environment", () => {
    const env = { POSTRIDER_URL: "https://a.example", POSTRIDER_LOGIN: "t1" };
    expect(loadClient(env, { "--server": "https://b.example/", "--login": "t2" })).toMatchObject({
      url: "https://b.example",
      login: "t2",
    });
  });

  test("a key that is not valid is not shown", () => {
    expect(() => loadClient({ POSTRIDER_API_KEY: "sk_live_secret" })).toThrow(
      "POSTRIDER_API_KEY must be an API key (svc_sk_…). Try: POSTRIDER_API_KEY=svc_sk_",
    );
  });

  test.each(["eyJh…", "Bearer eyJh", "eyJh\n.e30"])("a token that no header can carry is refused: %j", (token) => {
    expect(() => loadClient({ POSTRIDER_TOKEN: token })).toThrow(
      "POSTRIDER_TOKEN must be a session token, as a login returns it. Try: POSTRIDER_TOKEN=eyJ",
    );
  });
});
