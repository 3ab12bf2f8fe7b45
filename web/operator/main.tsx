import { render } from "preact";
import "../styles/tokens.css";
import "../styles/base.css";
import "../styles/parts.css";
import "../styles/shell.css";
import "../styles/front.css";
import { meetServer } from "../session/server.ts";
import { resume } from "./api/session.ts";
import { OperatorApp } from "./app.tsx";

void resume();
// Without a response, no payments are shown.
void meetServer().catch(() => {});

const root = document.getElementById("app");
if (root) render(<OperatorApp />, root);
