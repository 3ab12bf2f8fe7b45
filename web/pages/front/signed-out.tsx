import { Brand } from "../../parts/brand.tsx";
import { LinkButton } from "../../parts/button.tsx";

/** The head of the pages where accounts are created. */
export function FrontHead() {
  return (
    <header class="front-head">
      <Brand />
      <LinkButton href="/sign-in">Sign in</LinkButton>
    </header>
  );
}

export function SignUpClosed() {
  return (
    <p class="notice">
      Sign-up is closed on this server. Ask its operator for an account, then <a href="/sign-in">sign in</a>.
    </p>
  );
}
