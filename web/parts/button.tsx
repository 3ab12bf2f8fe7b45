import type { AnchorHTMLAttributes, ButtonHTMLAttributes, ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api/client.ts";
import { useReadOnly } from "./read-only.ts";
import { say } from "./said.tsx";

type Kind = "plain" | "primary" | "danger" | "quiet";

interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "onClick" | "type"> {
  kind?: Kind;
  type?: "button" | "submit";
  /** The button is busy until its promise settles; a rejection is shown as a message. */
  onClick?: () => unknown;
  /** Busy for another reason, such as a form being submitted. */
  busy?: boolean;
  /** It changes something, or is the way to it: off where nothing can be changed. */
  changes?: boolean;
  children: ComponentChildren;
}

export function Button({
  kind = "plain",
  type = "button",
  onClick,
  busy = false,
  changes = false,
  disabled,
  ...rest
}: ButtonProps) {
  const [isRunning, setRunning] = useState(false);
  const isBusy = busy || isRunning;
  const element = useRef<HTMLButtonElement>(null);
  const readOnly = useReadOnly();
  const whyOff = changes ? readOnly : null;
  const isOff = whyOff !== null || (disabled ?? false);
  useLayoutEffect(() => (isOff ? leaveFocus(element.current) : undefined), [isOff]);
  useLayoutEffect(() => {
    const button = element.current;
    return () => leaveFocus(button);
  }, []);

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
      ref={element}
      type={type}
      class={`button ${kind === "plain" ? "" : kind} ${rest.class ?? ""}`}
      disabled={isOff}
      aria-disabled={isBusy}
      aria-busy={isBusy}
      {...(whyOff !== null && { title: whyOff })}
      {...(onClick && { onClick: () => void run() })}
    />
  );
}

/**
 * A button that goes, or is switched off, leaves the focus to what it stands in. It would be lost, and whoever uses a
 * keyboard or a screen reader with it.
 */
function leaveFocus(button: HTMLButtonElement | null): void {
  if (button === null || document.activeElement !== button) return;
  const around: HTMLElement[] = [];
  for (let at = button.parentElement; at !== null; at = at.parentElement) {
    if (at.matches("li, form, section, dialog")) around.push(at);
  }
  requestAnimationFrame(() => {
    // Something else may have taken it, such as a dialog or the next page.
    if (![null, document.body, button].includes(document.activeElement as HTMLButtonElement | null)) return;
    const left = around.find(({ isConnected }) => isConnected) ?? document.querySelector("h1");
    if (left === null) return;
    left.tabIndex = -1;
    left.focus({ preventScroll: true });
  });
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
