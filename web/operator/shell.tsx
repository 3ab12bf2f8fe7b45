import { useState } from "preact/hooks";
import { ApiError } from "../api/client.ts";
import { Brand } from "../parts/brand.tsx";
import { Button } from "../parts/button.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Icon } from "../parts/icon.tsx";
import { say } from "../parts/said.tsx";
import { useFragment } from "./api/fragment.ts";
import { signOut } from "./api/session.ts";
import { type Screen, screens } from "./screens.ts";

/** The frame around every screen. */
export function OperatorShell() {
  const [here] = useFragment();
  const screen = screens.find(({ id }) => id === here) ?? screens[0];
  return (
    <div class="shell">
      <header class="side">
        <Brand href="/operator" />
        <p class="stream-state">Operator</p>
        <Navigation here={screen} />
        <div class="side-foot">
          <div class="nav">
            <button type="button" onClick={() => void tryToSignOut()}>
              <Icon name="exit" />
              Sign out
            </button>
          </div>
        </div>
      </header>
      <main class="main">
        <screen.Screen />
      </main>
    </div>
  );
}

function Navigation({ here }: { here: Screen }) {
  const [isMoreOpen, setMoreOpen] = useState(false);
  const shown = screens.filter(({ isShown = () => true }) => isShown());
  return (
    <>
      <nav class="nav" aria-label="Main">
        {shown.map(({ id, name, icon, isOnPhone = false }) => (
          <a
            key={id}
            href={`#${id}`}
            class={isOnPhone ? "" : "wide"}
            {...(id === here.id && { "aria-current": "page" as const })}
          >
            <Icon name={icon} />
            {name}
          </a>
        ))}
        <div class="phone-more">
          <button type="button" onClick={() => setMoreOpen(true)} aria-haspopup="dialog">
            <Icon name="more" />
            More
          </button>
        </div>
      </nav>
      {isMoreOpen && (
        <More screens={shown.filter(({ isOnPhone = false }) => !isOnPhone)} onClose={() => setMoreOpen(false)} />
      )}
    </>
  );
}

/** What does not fit into the bar on a phone. */
function More({ screens, onClose }: { screens: readonly Screen[]; onClose(): void }) {
  return (
    <Dialog title="Operator" asksNothing onClose={onClose}>
      <ul class="rows">
        {screens.map(({ id, name, icon }) => (
          <li key={id}>
            <a class="row" href={`#${id}`} onClick={onClose}>
              <Icon name={icon} /> {name}
            </a>
          </li>
        ))}
      </ul>
      <div class="buttons">
        <Button onClick={signOut}>Sign out</Button>
      </div>
    </Dialog>
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
