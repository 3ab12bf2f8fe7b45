/**
 * The operator opens an account with a token in the fragment, which no server is sent. It is this tab's session before any
 * other module looks for one (`api/session.ts` has the key), and goes from the address at once.
 */
const handed = /^#view=(.+)/.exec(location.hash)?.[1];
if (handed !== undefined) {
  history.replaceState(null, "", location.pathname);
  sessionStorage.setItem("postrider.session", handed);
}
