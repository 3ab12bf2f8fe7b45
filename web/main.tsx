import "./session/handed.ts";
import { render } from "preact";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/shell.css";
import { App } from "./app.tsx";
import { listenToKeys } from "./parts/keyboard.tsx";
import { followAccount } from "./session/account.ts";
import { keepSession } from "./session/renewal.ts";
import { meetServer } from "./session/server.ts";
import { shareSession } from "./session/tabs.ts";
import { guardUnsaved } from "./session/unsaved.ts";
import { followStream, handOver, onStream } from "./stream/stream.ts";
import { followUntoldEnds } from "./stream/untold-ends.ts";

keepSession();
shareSession();
followStream();
followUntoldEnds(onStream, handOver);
followAccount();
listenToKeys();
guardUnsaved();
// The pages that need it report a failure.
void meetServer().catch(() => {});

// The router decodes paths, and shows nothing at all if it cannot.
try {
  decodeURIComponent(location.pathname);
} catch {
  history.replaceState(null, "", "/nothing");
}

const root = document.getElementById("app");
if (root) render(<App />, root);
