import { readFileSync } from "node:fs";
import { readS3Access, type S3Access } from "./backup-settings.ts";
import { StartupError } from "./domain/errors.ts";
import type { Pausable } from "./domain/pauses.ts";
import type { Tier } from "./domain/tenant.ts";
import { isForeignVariable } from "./foreign-variables.ts";
import { type Environment, type Given, give, variablesOf } from "./given-settings.ts";
import { checkAuthorities, describePair } from "./lib/certificate.ts";
import { isLoopbackHost } from "./lib/cidr.ts";
import { messageOf } from "./lib/error-message.ts";
import { nearest } from "./lib/nearest.ts";
import { exposureOf } from "./private-files.ts";
import { clientSettings, settings } from "./settings.ts";

/** Everything that can be set, read once. The names of environment variables are in `settings.ts`, and nowhere else. */
export interface Config {
  readonly host: string;
  readonly port: number;
  /** A separate port for the probes; null: they have none. */
  readonly healthPort: number | null;
  readonly tls: TlsSettings | null;
  /** Null: `http://localhost:<port>`, with the listener's port. */
  readonly publicUrl: string | null;
  readonly dataDir: string;
  /** Null: SQLite, in the data directory. Holds a password. */
  readonly databaseUrl: string | null;
  /** Who copies SQLite's log back into its file. */
  readonly checkpoints: "own" | "external";
  /** Null: in the data directory. */
  readonly masterKeyFile: string | null;
  /** Null: the machine's name. */
  readonly nodeName: string | null;
  readonly signup: "open" | "closed";
  readonly allowTargets: readonly string[];
  readonly blockTargets: readonly string[];
  readonly trustedProxies: readonly string[];
  /** Null: only the operator token can read the metrics. */
  readonly metricsToken: string | null;
  readonly retryScheduleMs: readonly number[];
  /** Null: no webhook is ever disabled. */
  readonly disableAfterMs: number | null;
  readonly dnsServers: readonly string[];
  readonly extraCa: string | null;
  /** Null: deliveries go straight to their hosts. May hold a password. */
  readonly deliveryProxy: string | null;
  readonly maxBodyBytes: number;
  readonly minFreeDiskBytes: number;
  /** Null: forever. */
  readonly retentionMs: number | null;
  readonly retentionPayloadsMs: number | null;
  /** Null: any number. */
  readonly retentionMaxBytes: number | null;
  /** Null: backups go where the command says. */
  readonly backupUrl: string | null;
  /** Public keys; empty: backups are not encrypted. */
  readonly backupRecipients: readonly string[];
  /** Null: backups are made only by hand. */
  readonly backupCron: string | null;
  /** Null: all. */
  readonly backupKeep: number | null;
  /** Null: no key is set. */
  readonly s3: S3Access | null;
  readonly webhookConcurrency: number;
  /** Attempts per second for an account, by plan; null: no limit, as everywhere in local mode. */
  readonly deliveryRates: Readonly<Record<Tier, number | null>>;
  /** Bulk replays that an account may start in 24 hours; null: any number, as always in local mode. */
  readonly bulkReplaysPerDay: number | null;
  /** What waits for `postrider resume`. */
  readonly paused: readonly Pausable[];
  readonly payments: PaymentSettings;
  /** IANA name of the zone in which billing days and months are counted. */
  readonly billingTimeZone: string;
  /** Price of a month, in kobo. */
  readonly proPriceKobo: number;
  readonly businessPriceKobo: number;
  /** Null: no mail is sent. */
  readonly mail: MailSettings | null;
  readonly logLevel: "debug" | "info" | "warn" | "error";
  readonly logFormat: "auto" | "json" | "text";
  /** Public URL and listener are both loopback (rules, section 1). */
  readonly localMode: boolean;
  /** Names of variables that look like settings but come from a container platform. */
  readonly foreignVariables: readonly string[];
}

/** What the files contained at startup, and where they are: they are read again when they change. */
export interface TlsSettings {
  readonly cert: string;
  readonly key: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/** Which processor takes the payments (rules, sections 1 and 12). */
export type PaymentSettings =
  | { readonly kind: "off" }
  | { readonly kind: "sandbox" }
  /** The first key is used; callbacks signed with an earlier one are accepted too. */
  | { readonly kind: "paystack"; readonly secretKeys: readonly [string, ...string[]]; readonly baseUrl: string };

/** What those commands need that talk to a server like any client. */
export interface ClientConfig {
  readonly url: string;
  readonly login: string | null;
  readonly password: string | null;
  readonly token: string | null;
  readonly apiKey: string | null;
  /** The login of the command line itself, not of the environment. */
  readonly typedLogin: string | null;
}

/** Holds a password. */
export interface MailSettings {
  readonly smtpUrl: string;
  readonly from: string;
  /** The operator's addresses. */
  readonly operators: readonly string[];
}

/** The value of each setting, by its name in `settings`. */
export type SettingValues = Omit<
  Config,
  "localMode" | "s3" | "foreignVariables" | "tls" | "extraCa" | "payments" | "mail"
> & {
  smtpUrl: string | null;
  mailFrom: string | null;
  operatorMail: readonly string[];
  tlsCert: string | null;
  tlsKey: string | null;
  extraCaFile: string | null;
  payments: "auto" | "off" | "sandbox" | "paystack";
  paystackSecretKeys: readonly string[];
  paystackUrl: string;
};

/** What is set, by the names in `settings`, and where. */
export type GivenSettings = Readonly<Record<keyof typeof settings, Given>>;

/**
 * Reads what is set: defaults, then the environment and the files that it names, then flags.
 * @param warn called for a file with a secret that others can read
 * @throws StartupError with one line that names the setting and shows a valid value.
 */
export function readSettings(
  env: Environment,
  flags: ReadonlyMap<string, string>,
  warn: (message: string) => void = () => {},
): GivenSettings {
  const { own } = withoutForeign(env);
  refuseUnknown(own);
  return Object.fromEntries(
    Object.entries(settings).map(([name, definition]) => [name, give(definition, own, flags, warn)]),
  ) as Record<keyof typeof settings, Given>;
}

/**
 * The values alone, for commands that work beside a server and need a few of them: whether all fit together is for the server to
 * say, which may have been given others, as flags.
 * @throws StartupError as `readSettings`
 */
export const readValues = (
  env: Environment,
  flags: ReadonlyMap<string, string>,
  warn?: (message: string) => void,
): SettingValues => valuesOf(readSettings(env, flags, warn));

const valuesOf = (given: GivenSettings): SettingValues =>
  Object.fromEntries(Object.entries(given).map(([name, { value }]) => [name, value])) as unknown as SettingValues;

/** An environment that sets what was given as flags: for another process of this program, whose command has other flags. */
export function withFlags(env: Environment, flags: ReadonlyMap<string, string>): Environment {
  const given = Object.values(settings).flatMap((setting) => {
    const text = setting.flag === undefined ? undefined : flags.get(setting.flag);
    if (text === undefined) return [];
    return variablesOf(setting).map((name) => [name, name === setting.env ? text : undefined] as const);
  });
  return { ...env, ...Object.fromEntries(given) };
}

/** Like `readSettings`, and also judges the settings together. @throws StartupError with one line that says what to do */
export function loadConfig(
  env: Environment,
  flags: ReadonlyMap<string, string>,
  warn?: (message: string) => void,
): Config {
  return toConfig(readSettings(env, flags, warn), env, warn);
}

/**
 * @param warn called for a TLS key that everyone can read
 * @throws StartupError for settings that conflict, or a file that cannot be read
 */
export function toConfig(given: GivenSettings, env: Environment, warn: (message: string) => void = () => {}): Config {
  const { tlsCert, tlsKey, extraCaFile, payments, paystackSecretKeys, paystackUrl, ...more } = valuesOf(given);
  const { smtpUrl, mailFrom, operatorMail, ...plain } = more;
  if ((tlsCert === null) !== (tlsKey === null)) {
    throw new StartupError("POSTRIDER_TLS_CERT and POSTRIDER_TLS_KEY must be set together. Try: set both, or neither.");
  }
  if (plain.healthPort !== null && plain.healthPort !== 0 && plain.healthPort === plain.port) {
    throw new StartupError(
      `POSTRIDER_PORT and POSTRIDER_HEALTH_PORT are both ${plain.port}, but each needs a port of its own. ` +
        "Try: another POSTRIDER_HEALTH_PORT, such as 8081.",
    );
  }
  const publicHost = plain.publicUrl === null ? "localhost" : new URL(plain.publicUrl).hostname;
  const isLoopbackListener = isLoopbackHost(plain.host);
  if (!isLoopbackListener && plain.publicUrl === null) {
    throw new StartupError(
      `POSTRIDER_HOST=${plain.host} accepts connections from other machines, so the server must know its public address. ` +
        "Try: POSTRIDER_PUBLIC_URL=https://relay.example.com",
    );
  }
  const localMode = isLoopbackListener && isLoopbackHost(publicHost);
  if (!localMode && plain.allowTargets.length > 0 && plain.signup === "open") {
    throw new StartupError(
      "POSTRIDER_ALLOW_TARGETS opens private addresses to deliveries, so in public mode sign-up must be closed. " +
        "Try: POSTRIDER_SIGNUP=closed",
    );
  }
  if (plain.retentionMaxBytes !== null && plain.databaseUrl !== null) {
    throw new StartupError(
      "POSTRIDER_RETENTION_MAX_BYTES is for SQLite: a PostgreSQL database keeps the room of what was deleted, so its size does not tell how much is in use. Try: POSTRIDER_RETENTION=90d",
    );
  }
  if (plain.backupCron !== null && (plain.backupUrl === null || plain.databaseUrl !== null)) {
    throw new StartupError(
      plain.backupUrl === null
        ? "POSTRIDER_BACKUP_CRON needs a place for the backups. Try: POSTRIDER_BACKUP_URL=s3://backups/postrider"
        : "POSTRIDER_BACKUP_CRON is for SQLite: PostgreSQL has backups of its own. Try: pg_dump by the machine's cron, and no POSTRIDER_BACKUP_CRON.",
    );
  }
  if (plain.checkpoints === "external" && plain.databaseUrl !== null) {
    throw new StartupError(
      "POSTRIDER_CHECKPOINTS=external leaves the log of SQLite to Litestream, and POSTRIDER_DATABASE_URL names a PostgreSQL database. Try: remove one of the two.",
    );
  }
  return Object.freeze({
    ...plain,
    s3: readS3Access(env),
    ...(localMode && {
      deliveryRates: { free: null, pro: null, business: null, enterprise: null },
      bulkReplaysPerDay: null,
    }),
    tls: tlsCert === null || tlsKey === null ? null : readTls(tlsCert, tlsKey, warn),
    extraCa: extraCaFile === null ? null : readAuthorities(extraCaFile),
    mail: mailOf(smtpUrl, mailFrom, operatorMail),
    payments: paymentsOf(payments, paystackSecretKeys, paystackUrl, localMode),
    localMode,
    foreignVariables: withoutForeign(env).foreignVariables,
  });
}

/** Free space below which no events are accepted; 0: any will do. A database elsewhere takes no space here. */
export const diskFloorOf = ({ databaseUrl, minFreeDiskBytes }: Pick<Config, "databaseUrl" | "minFreeDiskBytes">) =>
  databaseUrl === null ? minFreeDiskBytes : 0;

/**
 * Reads the settings of a client: defaults, then the environment, then flags.
 * @throws StartupError with one line that names the setting and shows a valid value.
 */
export function loadClientConfig(
  env: Environment,
  flags: ReadonlyMap<string, string>,
  warn: (message: string) => void = () => {},
): ClientConfig {
  const { own } = withoutForeign(env);
  refuseUnknown(own);
  const values = Object.fromEntries(
    Object.entries(clientSettings).map(([name, definition]) => [name, give(definition, own, flags, warn).value]),
  ) as Record<keyof typeof clientSettings, unknown>;
  return { ...values, typedLogin: flags.has("--login") ? values.login : null } as ClientConfig;
}

function paymentsOf(
  asked: SettingValues["payments"],
  secretKeys: readonly string[],
  baseUrl: string,
  localMode: boolean,
): PaymentSettings {
  const [first, ...earlier] = secretKeys;
  const kind = asked !== "auto" ? asked : first !== undefined ? "paystack" : localMode ? "sandbox" : "off";
  if (kind === "paystack") {
    if (first !== undefined) return { kind, secretKeys: [first, ...earlier], baseUrl };
    throw new StartupError(
      "POSTRIDER_PAYMENTS=paystack needs the secret key of the Paystack account. Try: POSTRIDER_PAYSTACK_SECRET_KEY=sk_test_0123456789abcdef",
    );
  }
  if (kind === "sandbox" && secretKeys.some((key) => key.startsWith("sk_live_"))) {
    throw new StartupError(
      "POSTRIDER_PAYMENTS=sandbox moves no real money, but a live Paystack key is set. Try: remove one of the two.",
    );
  }
  return { kind };
}

function mailOf(smtpUrl: string | null, from: string | null, operators: readonly string[]): MailSettings | null {
  if ((smtpUrl === null) !== (from === null)) {
    throw new StartupError(
      "POSTRIDER_SMTP_URL and POSTRIDER_MAIL_FROM must be set together. Try: set both, or neither.",
    );
  }
  if (smtpUrl !== null && from !== null) return { smtpUrl, from, operators };
  if (operators.length === 0) return null;
  throw new StartupError(
    "POSTRIDER_OPERATOR_MAIL names who gets mail, but none can be sent. Try: POSTRIDER_SMTP_URL and POSTRIDER_MAIL_FROM, too.",
  );
}

function readTls(certFile: string, keyFile: string, warn: (message: string) => void): TlsSettings {
  const cert = readSetting("POSTRIDER_TLS_CERT", certFile);
  const key = readSetting("POSTRIDER_TLS_KEY", keyFile);
  // No refusal: tools that renew certificates have layouts of their own, and may protect the folder alone.
  const exposure = exposureOf("POSTRIDER_TLS_KEY", keyFile);
  if (exposure !== null) warn(exposure);
  try {
    describePair({ cert, key });
  } catch (error) {
    throw new StartupError(
      `POSTRIDER_TLS_CERT and POSTRIDER_TLS_KEY name files that cannot be used: ${messageOf(error)}. ` +
        "Try: the certificate chain, its own certificate first, and the private key of that one, both in PEM.",
    );
  }
  return { cert, key, certFile, keyFile };
}

function readAuthorities(file: string): string {
  const name = "POSTRIDER_EXTRA_CA_FILE";
  const pem = readSetting(name, file);
  try {
    checkAuthorities(pem);
  } catch (error) {
    throw new StartupError(
      `${name} names a file that cannot be used: ${file} (${messageOf(error)}). ` +
        "Try: certificates in PEM; openssl x509 -inform der -in ca.der -out ca.pem converts one that is not.",
    );
  }
  return pem;
}

/** A container platform describes its services in variables: those of one called "postrider" look like settings. */
function withoutForeign(env: Environment): { own: Environment; foreignVariables: string[] } {
  const foreignVariables = Object.keys(env).filter((name) => isForeignVariable(name, env[name] ?? ""));
  if (foreignVariables.length === 0) return { own: env, foreignVariables };
  return {
    own: Object.fromEntries(Object.entries(env).filter(([name]) => !foreignVariables.includes(name))),
    foreignVariables,
  };
}

const prefix = "POSTRIDER_";

/** A shell may have set both what the server reads and what its clients read: neither is a typo to the other. */
function refuseUnknown(env: Environment): void {
  const known = [...Object.values(settings), ...Object.values(clientSettings)].flatMap(variablesOf);
  for (const name of Object.keys(env)) {
    if (!name.startsWith(prefix) || known.includes(name)) continue;
    // Compare without the prefix, which would make them all alike.
    const words = known.map((one) => one.slice(prefix.length));
    const meant = nearest(name.slice(prefix.length).toUpperCase(), words);
    const hint = meant === null ? "" : `${prefix}${meant}, or `;
    throw new StartupError(`${name} is not a setting. Try: ${hint}postrider help, which lists them all.`);
  }
}

function readSetting(name: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    throw new StartupError(
      `${name} names a file that cannot be read: ${path}. Try: check the path and its permissions.`,
    );
  }
}
