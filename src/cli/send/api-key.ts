import type { ClientConfig } from "../../config.ts";
import { StartupError } from "../../domain/errors.ts";
import { clientSettings } from "../../settings.ts";
import { createGet } from "../client/get.ts";
import { type Credentials, openSession, type SessionDeps } from "../client/session.ts";
import { readCredentials } from "../client/sign-in.ts";
import type { Io } from "../io.ts";

/** Where the API key to send with comes from. */
export type KeySource =
  | { readonly kind: "key"; readonly apiKey: string }
  | { readonly kind: "account"; readonly credentials: Credentials };

/** The given key, the account that signs in, or what the user types. @throws StartupError with what to do */
export async function readKeySource(config: ClientConfig, io: Pick<Io, "ask" | "askSecretly">): Promise<KeySource> {
  if (config.apiKey !== null) return { kind: "key", apiKey: config.apiKey };
  if (config.login !== null || config.token !== null) {
    return { kind: "account", credentials: await readCredentials(config, io) };
  }
  const apiKey = (await io.askSecretly("API key: "))?.trim();
  if (apiKey && clientSettings.apiKey.parse(apiKey) === null) {
    throw new StartupError(`What was typed is not ${clientSettings.apiKey.rule}. Try: copy the whole key.`);
  }
  if (apiKey) return { kind: "key", apiKey };
  throw new StartupError(
    "No API key to send with. Try: POSTRIDER_API_KEY=svc_sk_…, or POSTRIDER_LOGIN and POSTRIDER_PASSWORD.",
  );
}

/** The key itself; for an account, an active one. @throws StartupError, TemporaryFailure */
export async function fetchKey(source: KeySource, deps: SessionDeps): Promise<string> {
  if (source.kind === "key") return source.apiKey;
  const session = await openSession(source.credentials, deps);
  try {
    const records = await createGet({ ...deps, session })("/v1/tenants/api-keys");
    return activeKey(Array.isArray(records) ? records : [], session.tenantId);
  } finally {
    session.close();
  }
}

interface KeyRecord {
  readonly key: string;
  readonly is_active: boolean;
  /** Null: the key does not expire. */
  readonly expires_at: string | null;
}

/** Prefers a key that does not expire: others are being phased out. */
function activeKey(records: readonly KeyRecord[], tenantId: string): string {
  const active = records.filter(({ is_active }) => is_active);
  const found = active.find(({ expires_at }) => expires_at === null) ?? active[0];
  if (found) return found.key;
  throw new StartupError(`${tenantId} has no active API key. Try: create one with POST /v1/tenants/api-keys/rotate.`);
}
