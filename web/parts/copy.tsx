import { useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";

const shownMs = 1600;

/** Copies a text, and says so where the button was pressed. @param what names the text for those who only hear the button */
export function Copy({
  text,
  what,
  label,
  kind = "quiet",
}: {
  text: string | (() => string | Promise<string>);
  what: string;
  /** Shown next to the icon. */
  label?: string;
  kind?: "quiet" | "plain" | "primary";
}) {
  const [isDone, setDone] = useState(false);

  async function copy(): Promise<void> {
    await copyText(typeof text === "string" ? text : await text());
    setDone(true);
    setTimeout(() => setDone(false), shownMs);
  }

  return (
    <Button kind={kind} onClick={copy} aria-label={isDone ? `Copied ${what}` : `Copy ${what}`} title={`Copy ${what}`}>
      <Icon name={isDone ? "check" : "copy"} />
      {label !== undefined && (isDone ? "Copied" : label)}
    </Button>
  );
}

/** Pages on plain http have no clipboard API, except on localhost. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (!isCopied) throw new Error("Your browser blocked copying. Select the text and copy it yourself.");
}
