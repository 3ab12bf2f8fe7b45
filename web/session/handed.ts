import { beginSession, isViewToken } from "../api/session.ts";

/**
 * The operator opens an account with a token in the fragment, which is never sent to a server. It becomes this tab's
 * session before any other module looks for one, and is removed from the address immediately. Any other token is dropped:
 * a link must not sign anybody in to the account of whoever made it.
 */
const handed = /^#view=(.+)/.exec(location.hash)?.[1];
if (handed !== undefined) {
  history.replaceState(null, "", location.pathname);
  if (isViewToken(handed)) beginSession(handed);
}
