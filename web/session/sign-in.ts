import { call } from "../api/client.ts";
import { beginSession } from "../api/session.ts";
import type { Authenticated } from "../api/types.ts";
import { announceSession } from "./tabs.ts";

/**
 * Signs in by tenant id or e-mail.
 * @param onAccepted runs before the signed-in page is shown: the moment to choose which one
 * @throws ApiError
 */
export async function signIn(loginId: string, password: string, onAccepted: () => void = () => {}): Promise<void> {
  const { token } = await call<Authenticated>("/v1/tenants/auth/login", {
    method: "POST",
    body: { loginId, password },
    credential: null,
  });
  onAccepted();
  beginSession(token);
  announceSession();
}
