import { backupSettings } from "./backup-settings.ts";
import { pausable } from "./domain/pauses.ts";
import { isAddress, isLoopbackHost } from "./lib/cidr.ts";
import {
  anyText,
  byteSize,
  cidrs,
  databaseUrl,
  defaultDeliveryRates,
  defaultTimeZone,
  deliveryRates,
  duration,
  type Form,
  httpUrl,
  itemLike,
  listOf,
  metricsToken,
  nairaInKobo,
  oneOf,
  optional,
  orWord,
  plainCidrs,
  proxyUrl,
  retentionAge,
  setting,
  smtpUrl,
  textLike,
  timeZone,
  wholeNumber,
  withoutPassword,
} from "./setting-forms.ts";

const delays: Form<number[]> = {
  rule: `none or up to 100 delays, comma-separated, each ${duration().rule}`,
  parse(text) {
    if (text === "none") return [];
    const list = listOf("delays", duration().parse).parse(text) ?? [];
    return list.length === 0 || list.length > 100 ? null : list;
  },
};

const highestPort = 65_535;

const dnsServerShape = /^(?:\[([\da-f.]*:[\da-f:.]*)\]|(\d+(?:\.\d+){3}))(?::(\d{1,5}))?$|^([\da-f]*:[\da-f:.]*)$/i;

/** `1.1.1.1`, `1.1.1.1:53`, `::1` or `[::1]:53`: the resolver throws at anything else, or takes another port for it. */
function dnsServer(text: string): string | null {
  const [, boxed, v4, port = "53", bare = ""] = dnsServerShape.exec(text) ?? [];
  return isAddress(boxed ?? v4 ?? bare) && Number(port) > 0 && Number(port) <= highestPort ? text : null;
}

const paystackUrl: Form<string> = {
  rule: `${httpUrl.rule}; http on loopback only`,
  parse(text) {
    const url = httpUrl.parse(text);
    return url?.startsWith("https:") || (url && isLoopbackHost(new URL(url).hostname)) ? url : null;
  },
};

/** Every setting, in the order in which help and documents list them. */
export const settings = {
  host: setting({
    env: "POSTRIDER_HOST",
    flag: "--host",
    default: "127.0.0.1",
    doc: "Address to listen on. Anything other than loopback requires POSTRIDER_PUBLIC_URL.",
    example: "0.0.0.0",
    ...textLike("a host name or an IP address", /^[^\s/]+$/),
  }),
  port: setting({
    env: "POSTRIDER_PORT",
    flag: "--port",
    default: "8080",
    doc: "Port to listen on; 0 picks a free one.",
    example: "8080",
    ...wholeNumber(0, highestPort),
  }),
  healthPort: setting({
    env: "POSTRIDER_HEALTH_PORT",
    default: "",
    doc: "Port on which a separate thread answers `/healthz` and `/readyz` over plain HTTP, even while the disk is stuck; none when empty.",
    example: "8081",
    ...optional(wholeNumber(0, highestPort)),
  }),
  tlsCert: setting({
    env: "POSTRIDER_TLS_CERT",
    default: "",
    doc: "PEM file with the certificate chain; together with POSTRIDER_TLS_KEY it turns on HTTPS. Reloaded when it changes.",
    example: "/etc/postrider/cert.pem",
    ...anyText,
  }),
  tlsKey: setting({
    env: "POSTRIDER_TLS_KEY",
    default: "",
    doc: "PEM file with the private key of POSTRIDER_TLS_CERT.",
    example: "/etc/postrider/key.pem",
    ...anyText,
  }),
  publicUrl: setting({
    env: "POSTRIDER_PUBLIC_URL",
    flag: "--public-url",
    default: "",
    doc: "Base of every URL that the server gives out; `http://localhost:<port>` when empty. A host that is not loopback switches to public mode.",
    example: "https://relay.example.com",
    isUrl: true,
    ...optional(httpUrl),
  }),
  dataDir: setting({
    env: "POSTRIDER_DATA_DIR",
    flag: "--data-dir",
    default: "./postrider-data",
    doc: "Folder for the database and the generated secrets; created on the first start with mode 0700.",
    example: "/var/lib/postrider",
    ...textLike("the path of a folder", /./s),
  }),
  databaseUrl: setting({
    env: "POSTRIDER_DATABASE_URL",
    default: "",
    doc: "`postgres://user:password@host:port/database` (PostgreSQL 15 to 18) keeps everything there, where up to 32 servers share it; SQLite in the data directory when empty.",
    example: "postgres://postrider:secret@db.internal:5432/postrider?sslmode=verify-full",
    isSecret: true,
    masked: withoutPassword,
    ...optional(databaseUrl),
  }),
  checkpoints: setting({
    env: "POSTRIDER_CHECKPOINTS",
    default: "own",
    doc: "`own`: the server copies SQLite's write-ahead log back into the database. `external`: it leaves the log to Litestream, which must be running.",
    example: "external",
    ...oneOf("own", "external"),
  }),
  masterKeyFile: setting({
    env: "POSTRIDER_MASTER_KEY_FILE",
    default: "",
    doc: "File with the master key, 64 hexadecimal digits; `master-key` in the data directory when empty. Servers that share a database need the same one.",
    example: "/run/secrets/postrider-master-key",
    ...anyText,
  }),
  nodeName: setting({
    env: "POSTRIDER_NODE_NAME",
    default: "",
    doc: "Name of this server among those that share the database; the machine's name when empty.",
    example: "relay-1",
    ...optional(textLike("1 to 64 letters, digits, underscores, dots, colons or hyphens", /^[\w.:-]{1,64}$/)),
  }),
  signup: setting({
    env: "POSTRIDER_SIGNUP",
    flag: "--signup",
    default: "open",
    doc: "`open`: anyone may create an account. `closed`: only the operator may, with `postrider tenant create`.",
    example: "closed",
    ...oneOf("open", "closed"),
  }),
  allowTargets: setting({
    env: "POSTRIDER_ALLOW_TARGETS",
    default: "",
    doc: "Comma-separated CIDRs that deliveries may reach although they are not public. In public mode, requires closed sign-up.",
    example: "10.1.0.0/16,fd12::/16",
    ...cidrs,
  }),
  blockTargets: setting({
    env: "POSTRIDER_BLOCK_TARGETS",
    default: "",
    doc: "Comma-separated CIDRs that deliveries must never reach. Overrides POSTRIDER_ALLOW_TARGETS.",
    example: "203.0.113.7,10.96.0.0/12",
    ...plainCidrs,
  }),
  trustedProxies: setting({
    env: "POSTRIDER_TRUSTED_PROXIES",
    default: "",
    doc: "Comma-separated CIDRs of proxies whose X-Forwarded-For is trusted.",
    example: "127.0.0.1/32",
    ...cidrs,
  }),
  metricsToken: setting({
    env: "POSTRIDER_METRICS_TOKEN",
    default: "",
    doc: "Token for the scraper: it reads `/metrics` in public mode and nothing else. At least 24 characters, no spaces. The operator token works too.",
    example: "mt_0123456789abcdef01234567",
    isSecret: true,
    ...optional(metricsToken),
  }),
  retryScheduleMs: setting({
    env: "POSTRIDER_RETRY_SCHEDULE",
    default: "5s,5m,30m,2h,5h,10h,10h",
    doc: "Comma-separated delays between attempts (ms s m h d). N delays make N + 1 attempts; `none`: a single one.",
    example: "5s,5m,30m",
    ...delays,
  }),
  disableAfterMs: setting({
    env: "POSTRIDER_DISABLE_AFTER",
    default: "5d",
    doc: "A webhook is disabled when every attempt to it has failed for this long (ms s m h d; less than 12h counts as 12h), or when it answers three deliveries in a row with 410; `0`: none ever is.",
    example: "5d",
    ...orWord("0", duration()),
  }),
  dnsServers: setting({
    env: "POSTRIDER_DNS_SERVERS",
    default: "",
    doc: "Comma-separated DNS resolvers for deliveries; the system's when empty.",
    example: "1.1.1.1,9.9.9.9:53",
    ...listOf("IP addresses, each with or without a port", dnsServer),
  }),
  deliveryProxy: setting({
    env: "POSTRIDER_DELIVERY_PROXY",
    default: "",
    doc: "`http://user:password@host:port` of the HTTP proxy that deliveries go through (CONNECT). It resolves the names and decides which addresses are reached.",
    example: "http://postrider:secret@proxy.internal:3128",
    isSecret: true,
    masked: withoutPassword,
    ...optional(proxyUrl),
  }),
  extraCaFile: setting({
    env: "POSTRIDER_EXTRA_CA_FILE",
    default: "",
    doc: "PEM file with additional certificate authorities for deliveries and mail.",
    example: "/etc/postrider/ca.pem",
    ...anyText,
  }),
  maxBodyBytes: setting({
    env: "POSTRIDER_MAX_BODY",
    default: "256KiB",
    doc: "Largest body that `POST /v1/ingest` accepts (bytes, KiB or MiB; at most 4MiB).",
    example: "256KiB",
    ...byteSize({ least: 1024, most: 4 * 2 ** 20 }),
  }),
  minFreeDiskBytes: setting({
    env: "POSTRIDER_MIN_FREE_DISK",
    default: "256MiB",
    doc: "Below this much free disk space, events and replays are refused with 503 and the responses of receivers are not stored; 0 turns the check off. Only for SQLite.",
    example: "1GiB",
    ...byteSize(),
  }),
  retentionMs: setting({
    env: "POSTRIDER_RETENTION",
    default: "none",
    doc: "How long events are kept, with their records and attempts, once every delivery has ended (h d, at least 1h); `none`: for ever.",
    example: "90d",
    ...retentionAge,
  }),
  retentionPayloadsMs: setting({
    env: "POSTRIDER_RETENTION_PAYLOADS",
    default: "none",
    doc: "How long payloads are kept; the events stay, and cannot be replayed (h d, at least 1h). `none`: as long as the events.",
    example: "30d",
    ...retentionAge,
  }),
  retentionMaxBytes: setting({
    env: "POSTRIDER_RETENTION_MAX_BYTES",
    default: "none",
    doc: "Size of the SQLite database (MiB or GiB, at least 64MiB) above which the oldest events go, once every delivery has ended; `none`: any size.",
    example: "20GiB",
    ...orWord("none", byteSize({ least: 64 * 2 ** 20 })),
  }),
  ...backupSettings,
  webhookConcurrency: setting({
    env: "POSTRIDER_WEBHOOK_CONCURRENCY",
    default: "16",
    doc: "Maximum number of concurrent deliveries to one webhook.",
    example: "16",
    ...wholeNumber(1, 512),
  }),
  deliveryRates: setting({
    env: "POSTRIDER_DELIVERY_RATE",
    default: defaultDeliveryRates,
    doc: "Maximum delivery attempts per second for an account, by tier, in public mode; `none`: no limit. An idle account may burst ten seconds' worth; anything above the limit waits. Tiers not listed keep their default.",
    example: "free=50,pro=1000,enterprise=none",
    ...deliveryRates,
  }),
  bulkReplaysPerDay: setting({
    env: "POSTRIDER_REPLAYS_PER_DAY",
    default: "100",
    doc: "Maximum number of bulk replays that an account may start in 24 hours, in public mode; `none`: no limit.",
    example: "100",
    ...orWord("none", wholeNumber(1, 10_000)),
  }),
  paused: setting({
    env: "POSTRIDER_PAUSED",
    default: "",
    doc: "`deliveries`, `charges` or both, comma-separated: the server runs and accepts events, but holds these back until `postrider resume`. For restored and cloned servers; `serve --paused` pauses both. Takes effect again at every start.",
    example: "deliveries,charges",
    ...listOf(`${pausable.join(", ")} or both`, oneOf(...pausable).parse),
  }),
  payments: setting({
    env: "POSTRIDER_PAYMENTS",
    default: "auto",
    doc: "`paystack`, `sandbox` (built in, no real money) or `off`. `auto`: Paystack if its key is set, otherwise the sandbox in local mode, otherwise off.",
    example: "sandbox",
    ...oneOf("auto", "paystack", "sandbox", "off"),
  }),
  paystackSecretKeys: setting({
    env: "POSTRIDER_PAYSTACK_SECRET_KEY",
    default: "",
    doc: "Secret key of the Paystack account. After a rotation, append the previous key after a comma, so that callbacks still in flight are accepted.",
    example: "sk_test_0123456789abcdef",
    isSecret: true,
    sells: true,
    ...listOf("secret keys of Paystack (sk_test_… or sk_live_…)", itemLike(/^sk_(?:test|live)_\w{4,100}$/)),
  }),
  paystackUrl: setting({
    env: "POSTRIDER_PAYSTACK_URL",
    default: "https://api.paystack.co",
    doc: "Base URL of the Paystack API; https, except on loopback.",
    example: "https://api.paystack.co",
    isUrl: true,
    sells: true,
    ...paystackUrl,
  }),
  billingTimeZone: setting({
    env: "POSTRIDER_BILLING_TZ",
    default: defaultTimeZone,
    doc: "Time zone in which the days of a subscription are counted; it is charged at 12:00 local time on the last day of the month.",
    example: "Africa/Lagos",
    sells: true,
    ...timeZone,
  }),
  proPriceKobo: setting({
    env: "POSTRIDER_PRICE_PRO",
    default: "15000",
    doc: "Monthly price of the pro plan, in NGN.",
    example: "15000",
    sells: true,
    ...nairaInKobo,
  }),
  businessPriceKobo: setting({
    env: "POSTRIDER_PRICE_BUSINESS",
    default: "60000",
    doc: "Monthly price of the business plan, in NGN.",
    example: "60000.50",
    sells: true,
    ...nairaInKobo,
  }),
  smtpUrl: setting({
    env: "POSTRIDER_SMTP_URL",
    default: "",
    doc: "`smtp://user:password@host:port` (587 if not given; TLS by STARTTLS) or `smtps://` (465). Mail is off when empty.",
    example: "smtp://postrider:secret@mail.example.com:587",
    isSecret: true,
    masked: withoutPassword,
    ...optional(smtpUrl),
  }),
  mailFrom: setting({
    env: "POSTRIDER_MAIL_FROM",
    default: "",
    doc: "Sender of the mails, an address or `Name <address>`; together with POSTRIDER_SMTP_URL.",
    example: "Postrider <postrider@example.com>",
    ...optional(
      textLike(
        "an e-mail address, or a name with one in <>",
        /^(?:[^<>"\r\n]{1,100} <[^\s@<>]+@[^\s@<>]+>|[^\s@<>]+@[^\s@<>]+)$/,
      ),
    ),
  }),
  operatorMail: setting({
    env: "POSTRIDER_OPERATOR_MAIL",
    default: "",
    doc: "Comma-separated addresses that are told when a backup fails, the disk is low or the queue keeps growing.",
    example: "ops@example.com",
    ...listOf("e-mail addresses", itemLike(/^[^\s@<>]+@[^\s@<>]+$/)),
  }),
  logLevel: setting({
    env: "POSTRIDER_LOG_LEVEL",
    flag: "--log-level",
    default: "info",
    doc: "`debug`, `info`, `warn` or `error`.",
    example: "info",
    ...oneOf("debug", "info", "warn", "error"),
  }),
  logFormat: setting({
    env: "POSTRIDER_LOG_FORMAT",
    flag: "--log-format",
    default: "auto",
    doc: "`json`: one object per line. `text`: human-readable. `auto`: text on a terminal, json elsewhere.",
    example: "json",
    ...oneOf("auto", "json", "text"),
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
    ...httpUrl,
  }),
  login: setting({
    env: "POSTRIDER_LOGIN",
    flag: "--login",
    default: "",
    doc: "Account to sign in to: its tenant id or, above the free tier, its e-mail address.",
    example: "t5k2m8q0w3r7xa",
    ...anyText,
  }),
  password: setting({
    env: "POSTRIDER_PASSWORD",
    default: "",
    doc: "Password of the account; prompted for on the terminal when empty. Not a flag, because other users of the machine can see those.",
    example: "Corr3ct#Horse",
    isSecret: true,
    ...anyText,
  }),
  token: setting({
    env: "POSTRIDER_TOKEN",
    default: "",
    doc: "Session token from an earlier login, instead of login and password.",
    example: "eyJhbGciOiJIUzI1NiJ9.e30.signature",
    isSecret: true,
    // RFC 6750, section 2.1: any other could not be sent.
    ...optional(textLike("a session token, as a login returns it", /^[\w.~+/-]+=*$/)),
  }),
  apiKey: setting({
    env: "POSTRIDER_API_KEY",
    default: "",
    doc: "API key to send with; without it, `send` signs in and uses the account's, or prompts for one.",
    example: "svc_sk_0123456789abcdefghijABCDEFGHIJ0123456789",
    isSecret: true,
    ...optional(textLike("an API key (svc_sk_…)", /^svc_sk_\w+$/)),
  }),
};
