import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";

/**
 * The browser's own modal dialog: it keeps the focus inside, and Escape closes it. One that asks for nothing has a close
 * button in its corner, and also closes on a press outside it. What is said (`said.tsx`) is behind it, where no screen reader
 * gets it either: what may be refused in a dialog is an `Attempt`, which shows why.
 */
export function Dialog({
  title,
  onClose,
  asksNothing = false,
  children,
}: {
  title: string;
  onClose(): void;
  /** Nothing typed or chosen can be lost. */
  asksNothing?: boolean;
  children: ComponentChildren;
}) {
  const element = useRef<HTMLDialogElement>(null);
  const latest = useRef(onClose);
  latest.current = onClose;
  const titleId = useId();
  useEffect(() => {
    const dialog = element.current;
    const tell = () => latest.current();
    dialog?.showModal();
    dialog?.addEventListener("close", tell);
    return () => {
      // The close event fires later, and the next dialog may be open by then.
      dialog?.removeEventListener("close", tell);
      dialog?.close();
    };
  }, []);
  return (
    <dialog
      ref={element}
      aria-labelledby={titleId}
      // Its content fills it, so a press on the dialog element itself hits its backdrop.
      onPointerDown={({ target, currentTarget }) => asksNothing && target === currentTarget && onClose()}
    >
      <div class="inside">
        <div class="dialog-head">
          <h2 id={titleId}>{title}</h2>
          {asksNothing && (
            <Button kind="quiet" onClick={onClose} aria-label="Close" title="Close">
              <Icon name="cross" />
            </Button>
          )}
        </div>
        {children}
      </div>
    </dialog>
  );
}
