/**
 * The operator opens an account with a token in the fragment, which is never sent to a server. It becomes this tab's
 * session before any other module looks for one (`api/session.ts` has the key), and is removed from the address
 * immediately.
 */
const handed = /^#view=(.+)/.exec(location.hash)?.[1];
if (handed !== undefined) {
  history.replaceState(null, "", location.pathname);
  sessionStorage.setItem("postrider.session", handed);
}
