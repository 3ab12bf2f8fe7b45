import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { createSigningKeys } from "../../src/accounts/signing-keys.ts";
import { signingSecretContext } from "../../src/delivery/signers.ts";
import { byAccount } from "../../src/domain/audit.ts";
import { unavailable } from "../../src/domain/errors.ts";
import type { Tenant } from "../../src/domain/tenant.ts";
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
  ownEventsPerMonth: null,
  ownWebhooks: null,
  ownRetentionDays: null,
  ownPayloadDays: null,
  ownStorageBytes: null,
  storageFullAt: null,
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
  });
  expect(await refusalOf(signingKeys.secret(tenant))).toBe("unauthenticated account_gone");
});

test("a rotated secret is answered without another look at the store, which could fail and have it repeated", async () => {
  const clock = createFakeClock();
  const vault = createVault(randomBytes(32));
  const rotated: { secret: string; othersEndAt: number }[] = [];
  const signingKeys = createSigningKeys({
    store: {
      signingKeys: async () => [],
      rotateSigningKey: async () => ({ ...newSigningKeyRow(), activatesAt: 0, retiresAt: null }),
      signingSecrets: async () => Promise.reject(unavailable("The disk is broken.", "storage_unavailable")),
      async rotateSigningSecret(_tenantKey, sealed, othersEndAt) {
        const secret = Buffer.from(vault.open(sealed, signingSecretContext(tenant.id))).toString();
        rotated.push({ secret, othersEndAt });
      },
    },
    clock,
    vault,
  });
  const { secret, earlierEndsAt } = await signingKeys.rotateSecret(tenant, byAccount("192.0.2.1"));
  expect(rotated).toEqual([{ secret, othersEndAt: earlierEndsAt ?? 0 }]);
  expect(earlierEndsAt).toBe(clock.now() + 7 * 24 * 60 * 60 * 1000);
});
