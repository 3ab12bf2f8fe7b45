import { Said } from "../parts/said.tsx";
import { standing } from "./api/session.ts";
import { OperatorShell } from "./shell.tsx";
import { SignInPage } from "./sign-in.tsx";

/** The operator's page. It is served at a single path; the fragment says which screen is shown. */
export function OperatorApp() {
  const now = standing.value;
  return (
    <>
      {now === "unknown" ? (
        <main class="front" aria-busy="true" />
      ) : now === "in" ? (
        <OperatorShell />
      ) : (
        <SignInPage why={now} />
      )}
      <Said />
    </>
  );
}
