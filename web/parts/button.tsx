import type { AnchorHTMLAttributes, ButtonHTMLAttributes, ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ApiError } from "../api/client.ts";
import { say } from "./said.tsx";

type Kind = "plain" | "primary" | "danger" | "quiet";

interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "onClick" | "type"> {
  kind?: Kind;
  type?: "button" | "submit";
  /** The button is busy until its promise settles; a rejection is shown as a message. */
  onClick?: () => unknown;
  /** Busy for another reason, such as a form being submitted. */
  busy?: boolean;
  children: ComponentChildren;
}

export function Button({ kind = "plain", type = "button", onClick, busy = false, disabled, ...rest }: ButtonProps) {
  const [isRunning, setRunning] = useState(false);
  const isBusy = busy || isRunning;

  async function run(): Promise<void> {
    if (isBusy || !onClick) return;
    setRunning(true);
    try {
      await onClick();
    } catch (error) {
      say(error instanceof ApiError ? error.message : String(error), "bad");
    } finally {
      setRunning(false);
    }
  }

  return (
    <button
      {...rest}
      type={type}
      class={`button ${kind === "plain" ? "" : kind} ${rest.class ?? ""}`}
      disabled={disabled ?? false}
      aria-disabled={isBusy}
      aria-busy={isBusy}
      {...(onClick && { onClick: () => void run() })}
    />
  );
}

/** A link that looks like a button. */
export function LinkButton({
  kind = "plain",
  href,
  children,
  ...rest
}: { kind?: Kind; href: string } & AnchorHTMLAttributes<HTMLAnchorElement>) {
  return (
    <a {...rest} class={`button ${kind === "plain" ? "" : kind}`} href={href}>
      {children}
    </a>
  );
}
