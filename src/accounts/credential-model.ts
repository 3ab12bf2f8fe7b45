import * as v from "valibot";
import { jsonObject } from "../http/validation.ts";

/** Bodies of the endpoints for API keys, signing keys and signing secrets. */

/** Rules, sections 5 and 8: seven days. */
const longestDelaySeconds = 604_800;

const delaySeconds = v.pipe(
  v.number("must be a number"),
  v.integer("must be a whole number"),
  v.minValue(0, "must be at least 0"),
  v.maxValue(longestDelaySeconds, `must be at most ${longestDelaySeconds}`),
);

export const apiKeyRecord = v.pipe(
  v.object({
    id: v.string(),
    key: v.string(),
    is_active: v.boolean(),
    created_at: v.string(),
    last_used: v.pipe(
      v.nullable(v.string()),
      v.description(
        "Null if the key has never been used. Where several servers share a database, uses on another server may appear up to a minute late.",
      ),
    ),
    expires_at: v.pipe(v.nullable(v.string()), v.description("When the key stops working; null until a rotation.")),
  }),
  v.title("ApiKey"),
);

export const apiKeyRecords = v.array(apiKeyRecord);

export const apiKeyExample = {
  id: "key_3b6w0x5c2v9t7r4ye7m4zk1q8n",
  key: "svc_sk_EXAMPLE0EXAMPLE0EXAMPLE0EXAMPLE0EXAMPLE0",
  is_active: true,
  created_at: "2026-03-01T12:34:56.789Z",
  last_used: null,
  expires_at: null,
};

export const rotateApiKeyBody = jsonObject({
  grace_period_seconds: v.optional(
    v.pipe(delaySeconds, v.description("How long the earlier keys keep working. 0, the default: not at all.")),
    0,
  ),
});

export const jwkSet = v.pipe(
  v.object({
    keys: v.array(
      v.object({
        kty: v.literal("OKP"),
        crv: v.literal("Ed25519"),
        x: v.string(),
        kid: v.string(),
        use: v.literal("sig"),
        alg: v.literal("EdDSA"),
      }),
    ),
  }),
  v.title("JwkSet"),
);

/** The public key of RFC 8037, appendix A.2. */
export const jwkSetExample = {
  keys: [
    {
      kty: "OKP",
      crv: "Ed25519",
      x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
      kid: "sk_2v9t7r4ye7m4zk1q8n3b6w0x5c",
      use: "sig",
      alg: "EdDSA",
    },
  ],
};

export const rotateSigningKeyBody = jsonObject({ activate_after_seconds: v.optional(delaySeconds, 86_400) });

export const rotatedSigningKey = v.pipe(
  v.object({
    kid: v.string(),
    activates_at: v.pipe(v.string(), v.description("When deliveries start being signed with this key.")),
    earlier_published_until: v.pipe(
      v.string(),
      v.description("Until then, the JWK set includes the earlier keys too."),
    ),
  }),
  v.title("RotatedSigningKey"),
);

export const rotatedSigningKeyExample = {
  kid: "sk_2v9t7r4ye7m4zk1q8n3b6w0x5c",
  activates_at: "2026-03-02T12:34:56.789Z",
  earlier_published_until: "2026-03-09T12:34:56.789Z",
};

export const signingSecret = v.pipe(
  v.object({
    secret: v.string(),
    earlier_secret_expires_at: v.pipe(
      v.nullable(v.string()),
      v.description("Until then, deliveries are also signed with the earlier secret; null if there is none."),
    ),
  }),
  v.title("SigningSecret"),
);

export const signingSecretExample = {
  secret: "whsec_RVhBTVBMRS1FWEFNUExFLUVYQU1QTEUtRVhBTVBMRS0=",
  earlier_secret_expires_at: null,
};
