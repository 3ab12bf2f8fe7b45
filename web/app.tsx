import { LocationProvider, Route, Router, useLocation } from "preact-iso/router";
import { isSignedIn, noSession } from "./api/session.ts";
import { EventPage } from "./pages/event.tsx";
import { EventsPage } from "./pages/events.tsx";
import { InboxPage } from "./pages/inbox.tsx";
import { KeysPage } from "./pages/keys.tsx";
import { NewPasswordPage } from "./pages/new-password.tsx";
import { NotFoundPage, NowherePage } from "./pages/not-found.tsx";
import { OverviewPage } from "./pages/overview.tsx";
import { PlanPage } from "./pages/plan.tsx";
import { ReplaysPage } from "./pages/replays.tsx";
import { SignedInAlready, SignInPage } from "./pages/sign-in.tsx";
import { SignUpPage } from "./pages/sign-up.tsx";
import { StartPage } from "./pages/start.tsx";
import { WebhookPage } from "./pages/webhook.tsx";
import { WebhooksPage } from "./pages/webhooks.tsx";
import { WelcomePage } from "./pages/welcome.tsx";
import { Brand } from "./parts/brand.tsx";
import { ShortcutHelp } from "./parts/keyboard.tsx";
import { Said } from "./parts/said.tsx";
import { isAskingTabs } from "./session/tabs.ts";
import { Shell } from "./shell.tsx";

/** The views, by path. The server knows the same paths (`src/http/dashboard-routes.ts`) and leaves all others alone. */
export function App() {
  return (
    <LocationProvider scope={/^\/(?!docs|pay|v1|openapi)/}>
      <Views />
      <ShortcutHelp />
      <Said />
    </LocationProvider>
  );
}

const views = {
  "/": OverviewPage,
  "/welcome": WelcomePage,
  "/events": EventsPage,
  "/events/:id": EventPage,
  "/webhooks": WebhooksPage,
  "/webhooks/:id": WebhookPage,
  "/replays": ReplaysPage,
  "/inbox": InboxPage,
  "/inbox/:token": InboxPage,
  "/keys": KeysPage,
  "/plan": PlanPage,
} as const;

/** Who opens the link of an e-mail has lost the password, signed in or not. */
function Views() {
  const { path } = useLocation();
  return isSignedIn.value && path !== "/new-password" ? <Inside /> : <Outside />;
}

function Inside() {
  return (
    <Shell>
      <Router>
        {Object.entries(views).map(([path, component]) => (
          <Route key={path} path={path} component={component} />
        ))}
        <Route path="/sign-in" component={SignedInAlready} />
        <Route path="/sign-up" component={SignedInAlready} />
        <Route default component={NotFoundPage} />
      </Router>
    </Shell>
  );
}

/** Without a session, every view asks the user to sign in at its own URL, and is shown there afterwards. */
function Outside() {
  if (isAskingTabs.value) {
    return (
      <main class="front" aria-busy="true">
        <Brand />
      </main>
    );
  }
  return (
    <Router>
      <Route path="/" component={FrontPage} />
      <Route path="/sign-up" component={SignUpPage} />
      <Route path="/new-password" component={NewPasswordPage} />
      {["/sign-in", ...Object.keys(views)].map((path) => (
        <Route key={path} path={path} component={SignInPage} />
      ))}
      <Route default component={NowherePage} />
    </Router>
  );
}

/** Chosen here, as the router does not notice another component at the same URL. */
function FrontPage() {
  const wasHere = noSession.value === "ended" || noSession.value === "left";
  return wasHere ? <SignInPage /> : <StartPage />;
}
