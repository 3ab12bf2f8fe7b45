import { ApiError } from "../api/client.ts";
import { Brand } from "../parts/brand.tsx";
import { Icon } from "../parts/icon.tsx";
import { say } from "../parts/said.tsx";
import { useFragment } from "./api/fragment.ts";
import { signOut } from "./api/session.ts";
import { screens } from "./screens.ts";

/** The frame around every screen. */
export function OperatorShell() {
  const [here] = useFragment();
  const screen = screens.find(({ id }) => id === here) ?? screens[0];
  const leave = (
    <button type="button" onClick={() => void tryToSignOut()}>
      <Icon name="exit" />
      Sign out
    </button>
  );
  return (
    <div class="shell">
      <header class="side">
        <Brand href="/operator" />
        <p class="stream-state">Operator</p>
        <nav class="nav" aria-label="Main">
          {screens
            .filter(({ isShown = () => true }) => isShown())
            .map(({ id, name, icon }) => (
              <a key={id} href={`#${id}`} {...(id === screen.id && { "aria-current": "page" as const })}>
                <Icon name={icon} />
                {name}
              </a>
            ))}
          <div class="phone-more">{leave}</div>
        </nav>
        <div class="side-foot">
          <div class="nav">{leave}</div>
        </div>
      </header>
      <main class="main">
        <screen.Screen />
      </main>
    </div>
  );
}

/** Only the server can delete the cookie: until it responds, the browser is still signed in. */
async function tryToSignOut(): Promise<void> {
  try {
    await signOut();
  } catch (error) {
    say(error instanceof ApiError ? error.message : String(error), "bad");
  }
}
