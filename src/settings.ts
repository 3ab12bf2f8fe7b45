import { backupSettings } from "./backup-settings.ts";
import { pausable } from "./domain/pauses.ts";
import type { Tier } from "./domain/tenant.ts";
import { isLoopbackHost } from "./lib/cidr.ts";
import { parseDuration } from "./lib/duration.ts";
import {
  byteSize,
  cidrText,
  defaultDeliveryRates,
  defaultTimeZone,
  httpUrl,
  isDatabaseUrl,
  isProxyUrl,
  isSmtpUrl,
  largestBody,
  listOf,
  metricsToken,
  nairaInKobo,
  oneOf,
  optionalText,
  plainCidrText,
  ratesOf,
  retentionAge,
  setting,
  timeZone,
  wholeNumber,
  withoutPassword,
} from "./setting-forms.ts";

/** Every setting, in the order in which help and documents list them. */
export const settings = {
  host: setting({
    env: "POSTRIDER_HOST",
    flag: "--host",
    default: "127.0.0.1",
    doc: "Address to listen on. Anything other than loopback requires POSTRIDER_PUBLIC_URL.",
    example: "0.0.0.0",
    parse: (text) => (text === "" || /[\s/]/.test(text) ? null : text),
  }),
  port: setting({
    env: "POSTRIDER_PORT",
    flag: "--port",
    default: "8080",
    doc: "Port to listen on; 0 picks a free one.",
    example: "8080",
    parse: (text) => wholeNumber(text, 0, 65_535),
  }),
  healthPort: setting({
    env: "POSTRIDER_HEALTH_PORT",
    default: "",
    doc: "Port on which a separate thread answers `/healthz` and `/readyz` over plain HTTP, even while the disk is stuck; none when empty.",
    example: "8081",
    parse: (text) => {
      if (text === "") return { value: null };
      const value = wholeNumber(text, 0, 65_535);
      return value === null ? null : { value };
    },
  }),
  tlsCert: setting({
    env: "POSTRIDER_TLS_CERT",
    default: "",
    doc: "PEM file with the certificate chain; together with POSTRIDER_TLS_KEY it turns on HTTPS. Reloaded when it changes.",
    example: "/etc/postrider/cert.pem",
    parse: optionalText,
  }),
  tlsKey: setting({
    env: "POSTRIDER_TLS_KEY",
    default: "",
    doc: "PEM file with the private key of POSTRIDER_TLS_CERT.",
    example: "/etc/postrider/key.pem",
    parse: optionalText,
  }),
  publicUrl: setting({
    env: "POSTRIDER_PUBLIC_URL",
    flag: "--public-url",
    default: "",
    doc: "Base of every URL that the server gives out; `http://localhost:<port>` when empty. A host that is not loopback switches to public mode.",
    example: "https://relay.example.com",
    isUrl: true,
    parse: (text): { value: string | null } | null => {
      if (text === "") return { value: null };
      const value = httpUrl(text);
      return value === null ? null : { value };
    },
  }),
  dataDir: setting({
    env: "POSTRIDER_DATA_DIR",
    flag: "--data-dir",
    default: "./postrider-data",
    doc: "Folder for the database and the generated secrets; created on the first start with mode 0700.",
    example: "/var/lib/postrider",
    parse: (text) => (text === "" ? null : text),
  }),
  databaseUrl: setting({
    env: "POSTRIDER_DATABASE_URL",
    default: "",
    doc: "`postgres://user:password@host:port/database` (PostgreSQL 15 to 18) keeps everything there, where up to 32 servers share it; SQLite in the data directory when empty.",
    example: "postgres://postrider:secret@db.internal:5432/postrider?sslmode=verify-full",
    isSecret: true,
    masked: withoutPassword,
    parse: (text): { value: string | null } | null => {
      if (text === "") return { value: null };
      return isDatabaseUrl(text) ? { value: text } : null;
    },
  }),
  checkpoints: setting({
    env: "POSTRIDER_CHECKPOINTS",
    default: "own",
    doc: "`own`: the server copies SQLite's write-ahead log back into the database. `external`: it leaves the log to Litestream, which must be running.",
    example: "external",
    parse: oneOf("own", "external"),
  }),
  masterKeyFile: setting({
    env: "POSTRIDER_MASTER_KEY_FILE",
    default: "",
    doc: "File with the master key, 64 hexadecimal digits; `master-key` in the data directory when empty. Servers that share a database need the same one.",
    example: "/run/secrets/postrider-master-key",
    parse: optionalText,
  }),
  nodeName: setting({
    env: "POSTRIDER_NODE_NAME",
    default: "",
    doc: "Name of this server among those that share the database; the machine's name when empty.",
    example: "relay-1",
    parse: (text): { value: string | null } | null => {
      if (text === "") return { value: null };
      return /^[\w.:-]{1,64}$/.test(text) ? { value: text } : null;
    },
  }),
  signup: setting({
    env: "POSTRIDER_SIGNUP",
    flag: "--signup",
    default: "open",
    doc: "`open`: anyone may create an account. `closed`: only the operator may, with `postrider tenant create`.",
    example: "closed",
    parse: oneOf("open", "closed"),
  }),
  allowTargets: setting({
    env: "POSTRIDER_ALLOW_TARGETS",
    default: "",
    doc: "Comma-separated CIDRs that deliveries may reach although they are not public. In public mode, requires closed sign-up.",
    example: "10.1.0.0/16,fd12::/16",
    parse: listOf(cidrText),
  }),
  blockTargets: setting({
    env: "POSTRIDER_BLOCK_TARGETS",
    default: "",
    doc: "Comma-separated CIDRs that deliveries must never reach. Overrides POSTRIDER_ALLOW_TARGETS.",
    example: "203.0.113.7,10.96.0.0/12",
    parse: listOf(plainCidrText),
  }),
  trustedProxies: setting({
    env: "POSTRIDER_TRUSTED_PROXIES",
    default: "",
    doc: "Comma-separated CIDRs of proxies whose X-Forwarded-For is trusted.",
    example: "127.0.0.1/32",
    parse: listOf(cidrText),
  }),
  metricsToken: setting({
    env: "POSTRIDER_METRICS_TOKEN",
    default: "",
    doc: "Token for the scraper: it reads `/metrics` in public mode and nothing else. At least 24 characters, no spaces. The operator token works too.",
    example: "mt_0123456789abcdef01234567",
    isSecret: true,
    parse: (text) => (text === "" ? { value: null } : metricsToken(text)),
  }),
  retryScheduleMs: setting({
    env: "POSTRIDER_RETRY_SCHEDULE",
    default: "5s,5m,30m,2h,5h,10h,10h",
    doc: "Comma-separated delays between attempts (ms s m h d). N delays make N + 1 attempts.",
    example: "5s,5m,30m",
    parse: (text) => {
      const list = listOf(parseDuration)(text);
      return list !== null && list.length > 100 ? null : list;
    },
  }),
  disableAfterMs: setting({
    env: "POSTRIDER_DISABLE_AFTER",
    default: "5d",
    doc: "A webhook is disabled when every attempt to it has failed for so long (ms s m h d), 12 hours at least, or when it answers three deliveries in a row with 410; `0`: none ever is.",
    example: "5d",
    parse: (text): { value: number | null } | null => {
      const value = text === "0" ? null : parseDuration(text);
      return value === null && text !== "0" ? null : { value };
    },
  }),
  dnsServers: setting({
    env: "POSTRIDER_DNS_SERVERS",
    default: "",
    doc: "Comma-separated DNS resolvers for deliveries; the system's when empty.",
    example: "1.1.1.1,9.9.9.9:53",
    parse: listOf((text) => (/^(\[[0-9a-fA-F:.]+\]|[0-9.]+)(:\d{1,5})?$|^[0-9a-fA-F:]+$/.test(text) ? text : null)),
  }),
  deliveryProxy: setting({
    env: "POSTRIDER_DELIVERY_PROXY",
    default: "",
    doc: "`http://user:password@host:port` of an HTTP proxy by which deliveries go (CONNECT). It resolves the names and decides which addresses are reached.",
    example: "http://postrider:secret@proxy.internal:3128",
    isSecret: true,
    masked: withoutPassword,
    parse: (text): { value: string | null } | null => {
      if (text === "") return { value: null };
      return isProxyUrl(text) ? { value: text } : null;
    },
  }),
  extraCaFile: setting({
    env: "POSTRIDER_EXTRA_CA_FILE",
    default: "",
    doc: "PEM file with additional certificate authorities for deliveries and mail.",
    example: "/etc/postrider/ca.pem",
    parse: optionalText,
  }),
  maxBodyBytes: setting({
    env: "POSTRIDER_MAX_BODY",
    default: "256KiB",
    doc: "Largest body that `POST /v1/ingest` accepts (bytes, KiB or MiB; at most 4MiB).",
    example: "256KiB",
    parse: (text) => {
      const size = byteSize(text);
      return size !== null && size >= 1024 && size <= largestBody ? size : null;
    },
  }),
  minFreeDiskBytes: setting({
    env: "POSTRIDER_MIN_FREE_DISK",
    default: "256MiB",
    doc: "Below this much free disk space, events and replays are refused with 503 and the responses of receivers are not stored; 0 turns the check off.",
    example: "1GiB",
    parse: byteSize,
  }),
  retentionMs: setting({
    env: "POSTRIDER_RETENTION",
    default: "none",
    doc: "How long events are kept, with their records and attempts, once every delivery has ended (h d, at least 1h); `none`: for ever.",
    example: "90d",
    parse: retentionAge,
  }),
  retentionPayloadsMs: setting({
    env: "POSTRIDER_RETENTION_PAYLOADS",
    default: "none",
    doc: "How long payloads are kept; the events stay, and cannot be replayed (h d, at least 1h). `none`: as long as the events.",
    example: "30d",
    parse: retentionAge,
  }),
  retentionMaxBytes: setting({
    env: "POSTRIDER_RETENTION_MAX_BYTES",
    default: "none",
    doc: "Size of the SQLite database (MiB or GiB, at least 64MiB) above which the oldest events go, once every delivery has ended; `none`: any size.",
    example: "20GiB",
    parse: (text): { value: number | null } | null => {
      if (text === "none") return { value: null };
      const value = byteSize(text);
      return value === null || value < 64 * 2 ** 20 ? null : { value };
    },
  }),
  ...backupSettings,
  webhookConcurrency: setting({
    env: "POSTRIDER_WEBHOOK_CONCURRENCY",
    default: "16",
    doc: "Maximum number of concurrent deliveries to one webhook.",
    example: "16",
    parse: (text) => wholeNumber(text, 1, 512),
  }),
  deliveryRates: setting({
    env: "POSTRIDER_DELIVERY_RATE",
    default: defaultDeliveryRates,
    doc: "Maximum delivery attempts per second for an account, by tier, in public mode; `none`: no limit. An idle account may burst ten seconds' worth; anything above the limit waits. Tiers not listed keep their default.",
    example: "free=50,pro=1000,enterprise=none",
    parse: (text) => {
      const given = ratesOf(text);
      return given && ({ ...ratesOf(defaultDeliveryRates), ...given } as Record<Tier, number | null>);
    },
  }),
  bulkReplaysPerDay: setting({
    env: "POSTRIDER_REPLAYS_PER_DAY",
    default: "100",
    doc: "Maximum number of bulk replays that an account may start in 24 hours, in public mode; `none`: no limit.",
    example: "100",
    parse: (text): { value: number | null } | null => {
      const value = text === "none" ? null : wholeNumber(text, 1, 10_000);
      return value === null && text !== "none" ? null : { value };
    },
  }),
  paused: setting({
    env: "POSTRIDER_PAUSED",
    default: "",
    doc: "`deliveries`, `charges` or both, comma-separated: the server runs and accepts events, but holds these back until `postrider resume`. For restored and cloned servers; `serve --paused` pauses both. Takes effect again at every start.",
    example: "deliveries,charges",
    parse: listOf(oneOf(...pausable)),
  }),
  payments: setting({
    env: "POSTRIDER_PAYMENTS",
    default: "auto",
    doc: "`paystack`, `sandbox` (built in, no real money) or `off`. `auto`: Paystack if its key is set, otherwise the sandbox in local mode, otherwise off.",
    example: "sandbox",
    parse: oneOf("auto", "paystack", "sandbox", "off"),
  }),
  paystackSecretKeys: setting({
    env: "POSTRIDER_PAYSTACK_SECRET_KEY",
    default: "",
    doc: "Secret key of the Paystack account. After a rotation, append the previous key after a comma, so that callbacks still in flight are accepted.",
    example: "sk_test_0123456789abcdef",
    isSecret: true,
    sells: true,
    parse: listOf((text) => (/^sk_(?:test|live)_\w{4,100}$/.test(text) ? text : null)),
  }),
  paystackUrl: setting({
    env: "POSTRIDER_PAYSTACK_URL",
    default: "https://api.paystack.co",
    doc: "Base URL of the Paystack API; https, except on loopback.",
    example: "https://api.paystack.co",
    isUrl: true,
    sells: true,
    parse: (text) => {
      const url = httpUrl(text);
      return url?.startsWith("https:") || (url && isLoopbackHost(new URL(url).hostname)) ? url : null;
    },
  }),
  billingTimeZone: setting({
    env: "POSTRIDER_BILLING_TZ",
    default: defaultTimeZone,
    doc: "Time zone in which the days of a subscription are counted; it is charged at 12:00 local time on the last day of the month.",
    example: "Africa/Lagos",
    sells: true,
    parse: timeZone,
  }),
  proPriceKobo: setting({
    env: "POSTRIDER_PRICE_PRO",
    default: "15000",
    doc: "Monthly price of the pro plan, in NGN.",
    example: "15000",
    sells: true,
    parse: nairaInKobo,
  }),
  businessPriceKobo: setting({
    env: "POSTRIDER_PRICE_BUSINESS",
    default: "60000",
    doc: "Monthly price of the business plan, in NGN.",
    example: "60000.50",
    sells: true,
    parse: nairaInKobo,
  }),
  smtpUrl: setting({
    env: "POSTRIDER_SMTP_URL",
    default: "",
    doc: "`smtp://user:password@host:port` (587 if not given; TLS by STARTTLS) or `smtps://` (465). Mail is off when empty.",
    example: "smtp://postrider:secret@mail.example.com:587",
    isSecret: true,
    masked: withoutPassword,
    parse: (text): { value: string | null } | null => {
      if (text === "") return { value: null };
      return isSmtpUrl(text) ? { value: text } : null;
    },
  }),
  mailFrom: setting({
    env: "POSTRIDER_MAIL_FROM",
    default: "",
    doc: "Sender of the mails, an address or `Name <address>`; together with POSTRIDER_SMTP_URL.",
    example: "Postrider <postrider@example.com>",
    parse: (text): { value: string | null } | null => {
      if (text === "") return { value: null };
      return /^(?:[^<>"\r\n]{1,100} <[^\s@<>]+@[^\s@<>]+>|[^\s@<>]+@[^\s@<>]+)$/.test(text) ? { value: text } : null;
    },
  }),
  operatorMail: setting({
    env: "POSTRIDER_OPERATOR_MAIL",
    default: "",
    doc: "Comma-separated addresses that are told when a backup fails, the disk is low or the queue keeps growing.",
    example: "ops@example.com",
    parse: listOf((text) => (/^[^\s@<>]+@[^\s@<>]+$/.test(text) ? text : null)),
  }),
  logLevel: setting({
    env: "POSTRIDER_LOG_LEVEL",
    flag: "--log-level",
    default: "info",
    doc: "`debug`, `info`, `warn` or `error`.",
    example: "info",
    parse: oneOf("debug", "info", "warn", "error"),
  }),
  logFormat: setting({
    env: "POSTRIDER_LOG_FORMAT",
    flag: "--log-format",
    default: "auto",
    doc: "`json`: one object per line. `text`: human-readable. `auto`: text on a terminal, json elsewhere.",
    example: "json",
    parse: oneOf("auto", "json", "text"),
  }),
};

/**
 * What `postrider listen` and `postrider send` read from the environment. The server has no use for it and ignores it, so
 * a shell that exports it can start the server as well.
 */
export const clientSettings = {
  url: setting({
    env: "POSTRIDER_URL",
    flag: "--server",
    default: "http://localhost:8080",
    doc: "Address of the server.",
    example: "https://relay.example.com",
    isUrl: true,
    parse: httpUrl,
  }),
  login: setting({
    env: "POSTRIDER_LOGIN",
    flag: "--login",
    default: "",
    doc: "Account to sign in to: its tenant id or, above the free tier, its e-mail address.",
    example: "t5k2m8q0w3r7xa",
    parse: optionalText,
  }),
  password: setting({
    env: "POSTRIDER_PASSWORD",
    default: "",
    doc: "Password of the account; prompted for on the terminal when empty. Not a flag, because other users of the machine can see those.",
    example: "Corr3ct#Horse",
    isSecret: true,
    parse: optionalText,
  }),
  token: setting({
    env: "POSTRIDER_TOKEN",
    default: "",
    doc: "Session token from an earlier login, instead of login and password.",
    example: "eyJhbGciOiJIUzI1NiJ9.e30.signature",
    isSecret: true,
    parse: optionalText,
  }),
  apiKey: setting({
    env: "POSTRIDER_API_KEY",
    default: "",
    doc: "API key to send with; without it, `send` signs in and uses the account's, or prompts for one.",
    example: "svc_sk_0123456789abcdefghijABCDEFGHIJ0123456789",
    isSecret: true,
    parse: (text): { value: string | null } | null =>
      text === "" || /^svc_sk_\w+$/.test(text) ? { value: text || null } : null,
  }),
};
