import type { ApiKey } from "../../api/types.ts";
import { maskKey, Secret } from "../../parts/secret.tsx";
import { now, Time } from "../../parts/time.tsx";

/** Keys, newest first; on a phone each becomes several lines. */
export function KeyTable({ keys }: { keys: readonly ApiKey[] }) {
  return (
    <table class="key-table">
      <thead>
        <tr>
          <th scope="col">Key</th>
          <th scope="col">State</th>
          <th scope="col">Created</th>
          <th scope="col">Last used</th>
        </tr>
      </thead>
      <tbody>
        {keys.map((key) => (
          <tr key={key.id}>
            <td>
              <Secret value={key.key} mask={maskKey(key.key)} what={`the key that ends in ${key.key.slice(-4)}`} />
            </td>
            <td>
              <KeyState of={key} />
            </td>
            <td data-name="Created">
              <Time at={key.created_at} />
            </td>
            <td data-name="Last used">{key.last_used === null ? "never" : <Time at={key.last_used} />}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function KeyState({ of: { is_active, expires_at } }: { of: ApiKey }) {
  if (!is_active || (expires_at !== null && Date.parse(expires_at) <= now.value)) {
    return (
      <span class="nowrap">
        <span class="badge">Expired</span> {expires_at !== null && <Time at={expires_at} />}
      </span>
    );
  }
  if (expires_at === null) return <span class="badge good">Active</span>;
  return (
    <span class="badge warn">
      Expires <Time at={expires_at} />
    </span>
  );
}
