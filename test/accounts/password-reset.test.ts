import { expect, test } from "bun:test";
import { openResetFact } from "../../src/accounts/password-reset.ts";
import { createVault } from "../../src/lib/vault.ts";

const [before, after] = [createVault(new Uint8Array(32).fill(1)), createVault(new Uint8Array(32).fill(2))];

test.each([
  ["is no link any more once the master key is another one", { sealedToken: "AAAA", expiresAt: 2 }, null],
  ["is none once it has ended", { sealedToken: "AAAA", expiresAt: 1 }, null],
  ["of another kind stays as it is", { webhook: "wh_1" }, { tenantId: "t1", webhook: "wh_1" }],
])("what a mail has to say %s", (_, fact, said) => {
  for (const vault of [before, after]) expect(openResetFact(vault, { tenantId: "t1", ...fact }, 1)).toEqual(said);
});
