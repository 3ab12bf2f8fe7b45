import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { createSigningKeys } from "../../src/accounts/signing-keys.ts";
import type { Tenant } from "../../src/domain.ts";
import { createVault } from "../../src/lib/vault.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { newSigningKeyRow, newTenant, refusalOf } from "../support/store-factory.ts";

const { webhooks: _, apiKey: _key, signingKey: _signing, sealedSigningSecret: _secret, ...columns } = newTenant();
const tenant: Tenant = {
  ...columns,
  key: 1,
  sessionVersion: 1,
  createdAt: 0,
  operatorSuspendedAt: null,
  paymentSuspendedAt: null,
  pastDueAt: null,
};

test("an account that was deleted and erased during the request has no secret, which is no defect", async () => {
  const signingKeys = createSigningKeys({
    store: {
      signingKeys: async () => [],
      rotateSigningKey: async () => ({ ...newSigningKeyRow(), activatesAt: 0, retiresAt: null }),
      signingSecrets: async () => [],
      rotateSigningSecret: async () => {},
    },
    clock: createFakeClock(),
    vault: createVault(randomBytes(32)),
    signers: { forget() {} },
  });
  expect(await refusalOf(signingKeys.secret(tenant))).toBe("unauthenticated account_gone");
  expect(await refusalOf(signingKeys.rotateSecret(tenant))).toBe("unauthenticated account_gone");
});
